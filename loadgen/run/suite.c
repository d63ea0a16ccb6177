/* SPDX-License-Identifier: MIT */
/* Operations and mixes of each kind of load. The commands of YCSB and hand-offs are here; the tests of -t
 * come from the catalogue. */
#include "suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In a cluster, the keys of one command must share a slot, using their hash tag. */
#define MSET_TAGGED_PAIR " {__tag__}:__int__ __data__"
static const char mset_tagged[] = "MSET" MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR
    MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR;

struct build {
	const struct options *o;
	struct workload *w;
	struct suite *s;
	char *error;
	size_t size;
};

/* The text of a SET with the expiry from the options. */
static const char *with_expiry(const struct build *b, const char *text, char *room, size_t size)
{
	bool sets = strncasecmp(text, "SET ", 4) == 0;

	if (!sets || !b->o->expiry_high)
		return text;
	snprintf(room, size, "%s%s __expiry__", text, protocol_of(b->o->protocol)->product->expiry);
	return room;
}

static int add_operation(struct build *b, const char *name, const char *text)
{
	char room[512];
	const char *texts[1] = {with_expiry(b, text, room, sizeof(room))};

	return workload_add(b->w, name, texts, 1, b->error, b->size);
}

static struct test *add_test(struct build *b, const char *name, enum preparation preparation)
{
	struct test *t = &b->s->tests[b->s->count++];

	memset(t, 0, sizeof(*t));
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->preparation = preparation;
	return t;
}

static int build_tests(struct build *b)
{
	for (int i = 0; i < CATALOGUE_ENTRIES; i++) {
		const struct catalogue_entry *e = &catalogue[i];
		struct test *t;
		int n;

		if (e->product != protocol_of(b->o->protocol)->product || !catalogue_wanted(b->o->tests, e))
			continue;
		n = add_operation(b, e->name,
				  b->o->deployment == DEPLOYMENT_CLUSTER && strcmp(e->name, "MSET") == 0
				      ? mset_tagged
				      : e->text);
		if (n < 0)
			return n;
		if (strcmp(e->name, "PING_INLINE") == 0)
			b->w->operations[n].steps[0].command.inlined = true;
		t = add_test(b, e->name, e->preparation);
		mix_add(&t->mix, (uint32_t)n, 1);
		mix_close(&t->mix);
	}
	return 0;
}

/* GET before SET, so that tables, logs and older recordings have the same order. */
static int build_mix(struct build *b)
{
	struct test *t = add_test(b, b->o->fill ? "fill" : "SET+GET", PREPARE_NOTHING);
	int get = b->o->gets ? add_operation(b, "GET", "GET __key__") : 0;
	int set = b->o->sets ? add_operation(b, "SET", "SET __key__ __data__") : 0;

	if (get < 0 || set < 0)
		return -EINVAL;
	if (b->o->gets)
		mix_add(&t->mix, (uint32_t)get, b->o->gets);
	if (b->o->sets)
		mix_add(&t->mix, (uint32_t)set, b->o->sets);
	mix_close(&t->mix);
	t->mix.sequential = b->o->fill != 0;
	return 0;
}

static void own_keys(const struct options *o, const struct custom_command *c, struct operation *op)
{
	op->own_keys = c->has_distribution || c->keys > 0;
	op->distribution = c->has_distribution ? c->distribution : o->distribution;
	op->keys = c->keys ? c->keys : o->keys ? o->keys : 1;
}

static int read_data(struct build *b)
{
	if (!b->o->data_path)
		return 0;
	b->w->data = calloc(1, sizeof(*b->w->data));
	return b->w->data ? data_set_read(b->w->data, b->o->data_path, b->error, b->size) : -ENOMEM;
}

/* Commands with the same verb are distinguished by number: SET, SET#2. */
static int build_commands(struct build *b)
{
	struct test *t = add_test(b, "commands", PREPARE_NOTHING);
	int rc = read_data(b);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < b->o->command_count; i++) {
		int n = workload_add(b->w, NULL, &b->o->commands[i].text, 1, b->error, b->size);
		uint32_t same = 1;
		char *name;

		if (n < 0)
			return n;
		name = b->w->operations[n].name;
		for (int k = 0; k < n; k++)
			same += strncmp(b->w->operations[k].name, name, strlen(name)) == 0 &&
				strchr("#", b->w->operations[k].name[strlen(name)]) != NULL;
		if (same > 1)
			snprintf(name + strlen(name), OPERATION_NAME - strlen(name), "#%u", same);
		own_keys(b->o, &b->o->commands[i], &b->w->operations[n]);
		if (b->w->operations[n].cursor &&
		    (b->o->pipeline > 1 || b->o->deployment != DEPLOYMENT_SINGLE)) {
			snprintf(
			    b->error, b->size,
			    "__cursor__ needs -P 1 and one server: the next request depends on the answer");
			return -EINVAL;
		}
		mix_add(&t->mix, (uint32_t)n, b->o->commands[i].weight);
	}
	mix_close(&t->mix);
	return 0;
}

/* ---- YCSB ---- */

/* The Redis layout of YCSB's binding: a hash per record, and a sorted set of all keys for scans. */
static int build_ycsb(struct build *b)
{
	static const char *const read[] = {"HGETALL __key__"};
	static const char *const update[] = {"HMSET __key__ __field__ __data__"};
	static const char *const insert[] = {
	    "HMSET __new_key__ field0 __data__ field1 __data__ field2 __data__ field3 __data__ field4 "
	    "__data__ "
	    "field5 __data__ field6 __data__ field7 __data__ field8 __data__ field9 __data__",
	    "ZADD _indices __index_score__ __key__"};
	static const char *const scan[] = {
	    "ZRANGEBYSCORE _indices __index_score__ +inf LIMIT 0 __scan_length__", "HGETALL __captured__"};
	static const char *const modify[] = {"HGETALL __key__", "HMSET __key__ __field__ __data__"};
	static const struct {
		enum ycsb_operation operation;
		const char *name;
		const char *const *texts;
		uint32_t steps;
	} all[] = {
	    {YCSB_READ, "READ", read, 1},
	    {YCSB_UPDATE, "UPDATE", update, 1},
	    {YCSB_INSERT, "INSERT", insert, 2},
	    {YCSB_SCAN, "SCAN", scan, 2},
	    {YCSB_READ_MODIFY_WRITE, "READ-MODIFY-WRITE", modify, 2},
	};
	const struct ycsb_workload *y = b->o->ycsb == 'L' ? NULL : ycsb_find(b->o->ycsb);
	char name[TEST_NAME];
	struct test *t;

	snprintf(name, sizeof(name), y ? "YCSB %c" : "YCSB load", b->o->ycsb);
	t = add_test(b, name, PREPARE_NOTHING);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		double share = y ? y->shares[all[i].operation] : all[i].operation == YCSB_INSERT;
		int n;

		if (share <= 0)
			continue;
		n = workload_add(b->w, all[i].name, all[i].texts, all[i].steps, b->error, b->size);
		if (n < 0)
			return n;
		b->w->operations[n].scan = all[i].operation == YCSB_SCAN;
		mix_add(&t->mix, (uint32_t)n, (uint64_t)(share * 1000000 + 0.5));
	}
	mix_close(&t->mix);
	b->w->names.ycsb = true;
	if (!y) {
		b->w->keys = 0; /* the base grows from nothing */
		return 0;
	}
	b->w->ycsb = malloc(sizeof(*b->w->ycsb));
	if (!b->w->ycsb)
		return -ENOMEM;
	ycsb_keys_init(b->w->ycsb, y, b->w->keys, b->o->requests ? b->o->requests : b->w->keys);
	return 0;
}

static int build_replay(struct build *b)
{
	struct test *t = add_test(b, "replay", PREPARE_NOTHING);

	replay_fill(b->o->replay, b->w);
	for (uint32_t i = 0; i < b->w->select; i++)
		mix_add(&t->mix, i, 1);
	mix_close(&t->mix);
	return 0;
}

static int build_deliveries(struct build *b)
{
	static const struct {
		const char *test, *text, *name;
	} kinds[] = {
	    [DELIVERY_PUBSUB] = {"pub/sub", "PUBLISH __key__ __data__", "DELIVER"},
	    [DELIVERY_LIST] = {"list hand-off", "RPUSH __key__ __data__", "BLPOP"},
	    [DELIVERY_STREAM] = {"stream hand-off", "XADD __key__ * message __data__", "XREAD"},
	    [DELIVERY_GROUP] = {"group hand-off", "XADD __key__ * message __data__", "XREADGROUP"},
	};
	struct test *t = add_test(b, kinds[b->o->delivery].test, PREPARE_NOTHING);
	int rc = workload_add_messages(b->w, kinds[b->o->delivery].text, kinds[b->o->delivery].name,
				       b->o->seed, b->error, b->size);

	if (rc)
		return rc;
	mix_add(&t->mix, 0, 1);
	mix_close(&t->mix);
	return 0;
}

/* The number of keys that names must cover: a growing base continues after the key space. */
static uint64_t keys_named(const struct options *o, const struct workload *w)
{
	static const struct catalogue_entry insert = {.name = "INSERT"};
	bool grows = o->tests && catalogue_wanted(o->tests, &insert);
	uint64_t keys = w->keys;
	uint64_t inserted = o->requests ? o->requests : KEY_SPACE_MAX;

	for (uint32_t i = 0; i < o->command_count; i++) {
		grows |= strstr(o->commands[i].text, "__new_key__") != NULL;
		keys = o->commands[i].keys > keys ? o->commands[i].keys : keys;
	}
	if (!grows)
		return keys;
	return inserted < KEY_SPACE_MAX - keys ? keys + inserted : KEY_SPACE_MAX;
}

int suite_build(const struct options *o, struct workload *w, struct suite *s, char *error, size_t size)
{
	struct build b = {o, w, s, error, size};
	int rc;

	memset(w, 0, sizeof(*w));
	memset(s, 0, sizeof(*s));
	snprintf(error, size, "not enough memory for the workload");
	w->protocol = o->protocol;
	w->keys = o->fill ? o->fill : o->keys ? o->keys : 1;
	w->distribution = o->distribution;
	w->split = o->split;
	w->verify = o->verify;
	w->quiet = o->meta_quiet;
	w->values.sizes = o->sizes;
	w->fill.fields = o->fields;
	w->fill.expiry_low = o->expiry_low;
	w->fill.expiry_high = o->expiry_high;
	rc = key_names_prepare(&w->names, o->key_prefix, o->key_length, keys_named(o, w), error, size);
	if (rc)
		return rc;
	rc = o->replay		? build_replay(&b)
	     : o->delivery	? build_deliveries(&b)
	     : o->ycsb		? build_ycsb(&b)
	     : o->command_count ? build_commands(&b)
	     : o->tests		? build_tests(&b)
				: build_mix(&b);
	/* The server may have to be asked first where keys are and which commands write (route.c). */
	return rc || options_ask_first(o) ? rc : workload_prepare(w, o->compressible, o->seed);
}
