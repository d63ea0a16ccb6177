/* SPDX-License-Identifier: MIT */
/* The workload.
 *
 * Operations are built from command texts once. Per-request work (a key, a template's digits) is inlined from
 * the header where it is cheap, and here otherwise. */
#include "loadgen/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/protocol.h"
#include "loadgen/stamp.h"
#include "recording/recording.h"

/* ---- operations ---- */

/* Only the answers of SCAN and of commands like it have the next cursor. */
static bool check_cursor(const struct command *c, const char *verb, char *error, size_t size)
{
	size_t length = strlen(verb);

	if (!c->cursor || (length >= 4 && strcmp(verb + length - 4, "SCAN") == 0))
		return true;
	snprintf(error, size,
		 "__cursor__ is for SCAN, HSCAN, SSCAN and ZSCAN: the answer to %s has no cursor, so a scan "
		 "with it "
		 "would never end",
		 verb);
	return false;
}

int workload_add(struct workload *w, const char *name, const char *const *texts, uint32_t steps, char *error,
		 size_t size)
{
	const struct protocol *protocol = protocol_of(w->protocol);
	struct operation *o = &w->operations[w->operation_count];
	char verb[COMMAND_NAME];

	if (w->operation_count == OPERATIONS_MAX) {
		snprintf(error, size, "more than %d operations in a run", OPERATIONS_MAX);
		return -EINVAL;
	}
	memset(o, 0, sizeof(*o));
	w->operation_count++;
	for (uint32_t i = 0; i < steps; i++) {
		struct step *s = &o->steps[i];

		if (!command_parse(&s->command, texts[i], error, size) ||
		    !protocol->fits(&s->command, error, size))
			return -EINVAL;
		command_name(&s->command, verb, sizeof(verb));
		protocol->expect(&s->command, &s->expected);
		if (!command_bind(&s->command, w->data, error, size) ||
		    !check_cursor(&s->command, verb, error, size))
			return -EINVAL;
		o->cursor |= s->command.cursor;
		if (protocol->settle && !protocol->settle(&s->command, w->quiet, texts[i], error, size))
			return -EINVAL;
		if (i == 0)
			snprintf(o->name, sizeof(o->name), "%s", name ? name : verb);
		o->inserts |= s->command.inserts;
		o->step_count++;
	}
	/* Only a read of the key's own value, and nothing else, can be checked. */
	o->verifies = steps == 1 && strcmp(verb, "GET") == 0 && o->steps[0].command.word_count == 2 &&
		      o->steps[0].command.part_count == 2 && o->steps[0].command.parts[1].kind == PART_KEY;
	w->growing |= o->inserts;
	return (int)w->operation_count - 1;
}

struct operation *workload_add_bare(struct workload *w, const char *name)
{
	struct operation *o = &w->operations[w->operation_count++];

	memset(o, 0, sizeof(*o));
	snprintf(o->name, sizeof(o->name), "%s", name);
	o->step_count = 1;
	return o;
}

int workload_add_messages(struct workload *w, const char *text, const char *name, uint64_t seed, char *error,
			  size_t size)
{
	int n = workload_add(w, NULL, &text, 1, error, size);
	struct command *c;

	if (n < 0)
		return n;
	c = &w->operations[n].steps[0].command;
	for (uint32_t i = 0; i < c->part_count; i++)
		if (c->parts[i].kind == PART_DATA)
			c->parts[i].kind = PART_STAMP;
	w->stamps = calloc(1, sizeof(*w->stamps));
	if (!w->stamps)
		return -ENOMEM;
	/* Even a run with the same seed has a different id for messages. */
	w->stamps->run = (uint32_t)(ft_now_ns() ^ seed);
	w->fill.stamps = w->stamps;
	w->delivery = (uint8_t)w->operation_count;
	workload_add_bare(w, name);
	return 0;
}

int workload_wait(struct workload *w, uint32_t replicas, uint32_t wait_ms, char *error, size_t size)
{
	bool any = false;
	char text[64];

	snprintf(text, sizeof(text), "WAIT %u %u", replicas, wait_ms);
	for (uint32_t i = 0; i < w->operation_count; i++) {
		struct operation *o = &w->operations[i];
		struct step *s = &o->steps[1];

		if (o->step_count > 1 || !o->steps[0].route.writes)
			continue;
		if (!command_parse(&s->command, text, error, size))
			return -EINVAL;
		s->expected = (struct expected){.kind = REPLY_INTEGER};
		s->least = replicas;
		o->step_count = 2;
		any = true;
	}
	if (!any)
		snprintf(error, size, "--wait needs writes, but this workload writes nothing");
	return any ? 0 : -EINVAL;
}

void mix_add(struct mix *m, uint32_t operation, uint64_t weight)
{
	m->operations[m->count] = (uint8_t)operation;
	m->below[m->count++] = weight;
}

void mix_close(struct mix *m)
{
	unsigned __int128 sum = 0, seen = 0;

	for (uint32_t i = 0; i < m->count; i++)
		sum += m->below[i];
	for (uint32_t i = 0; i < m->count; i++) {
		seen += m->below[i];
		m->below[i] = i + 1 == m->count ? UINT64_MAX : (uint64_t)((seen << 64) / sum) - 1;
	}
}

/* ---- templates ---- */

/* Placeholders whose digits change from request to request. */
static uint32_t count_patched(const struct command *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->part_count; i++)
		n += c->parts[i].kind == PART_KEY || c->parts[i].kind == PART_OTHER_KEY ||
		     c->parts[i].kind == PART_INT || c->parts[i].kind == PART_SCORE ||
		     c->parts[i].kind == PART_FIELD || c->parts[i].kind == PART_KEY_NUMBER ||
		     c->parts[i].kind == PART_TAG;
	return n;
}

/* Formats a step of fixed width once. A step whose numbers aren't digits on the wire (memcached's binary
 * protocol) can't be patched, and is formatted per request. */
static int make_template(const struct workload *w, struct step *s)
{
	const struct request_values none = {0};
	struct random_stream random = {0};
	struct bytes bytes = {0};

	if (!s->command.words || !command_fixed(&s->command, &w->fill))
		return 0;
	if (!protocol_of(w->protocol)->write(&s->command, &w->fill, &none, &random, &bytes, &s->patches)) {
		free(bytes.at);
		return -ENOMEM;
	}
	if (s->patches.count < count_patched(&s->command)) {
		free(bytes.at);
		return 0;
	}
	s->bytes = bytes.at;
	s->length = (uint32_t)bytes.length;
	return 0;
}

int workload_prepare(struct workload *w, double compressible, uint64_t seed)
{
	struct random_stream random = random_begin(seed, UINT32_MAX, 0);
	uint32_t bytes = w->values.sizes.high;

	/* YCSB draws each field separately; others send the same value, as redis-benchmark does, which needs
	 * no copying. */
	if (w->values.sizes.kind == SIZE_FIXED && !w->verify && !w->names.ycsb) {
		w->fixed_value = malloc(bytes);
		if (!w->fixed_value)
			return -ENOMEM;
		values_text(w->fixed_value, bytes, compressible, &random);
	} else if (values_prepare(&w->values, compressible, w->verify ? 1 : random_next(&random))) {
		return -ENOMEM;
	}
	w->fill.names = &w->names;
	w->fill.values = &w->values;
	w->fill.keys = w->keys;
	w->fill.values_of_keys = w->verify;
	w->fill.fixed_value = w->fixed_value;
	w->fill.data = w->data;
	if (w->growing) {
		w->base = malloc(sizeof(*w->base));
		if (!w->base)
			return -ENOMEM;
		key_base_init(w->base, w->keys);
	}
	for (uint32_t i = 0; i < w->operation_count; i++)
		for (uint32_t k = 0; k < w->operations[i].step_count; k++)
			if (make_template(w, &w->operations[i].steps[k]))
				return -ENOMEM;
	return 0;
}

void workload_free(struct workload *w)
{
	for (uint32_t i = 0; i < w->operation_count; i++) {
		for (uint32_t k = 0; k < STEPS_MAX; k++) {
			command_free(&w->operations[i].steps[k].command);
			free(w->operations[i].steps[k].bytes);
		}
	}
	if (w->data)
		data_set_free(w->data);
	free(w->data);
	values_free(&w->values);
	key_names_free(&w->names);
	free(w->stamps);
	free(w->fixed_value);
	free(w->base);
	free(w->ycsb);
	memset(w, 0, sizeof(*w));
}

/* ---- keys ---- */

int chooser_init(struct chooser *c, const struct workload *w, const struct mix *m, uint64_t seed,
		 uint32_t thread, uint64_t first, uint64_t stride, uint32_t connections,
		 uint32_t first_connection, uint32_t all_connections)
{
	*c = (struct chooser){
	    .keys = random_begin(seed, thread, 1),
	    .operations = random_begin(seed, thread, 2),
	    .next_key = first,
	    .stride = stride,
	    .first_connection = first_connection,
	    .all_connections = all_connections,
	};
	key_drawer_init(&c->drawer, &w->distribution);
	if (w->ycsb)
		c->ycsb = *w->ycsb;
	for (uint32_t i = 0; i < m->count && !c->by_operation; i++) {
		if (!w->operations[m->operations[i]].own_keys)
			continue;
		c->by_operation = calloc(w->operation_count, sizeof(*c->by_operation));
		if (!c->by_operation)
			return -ENOMEM;
		for (uint32_t k = 0; k < w->operation_count; k++) {
			key_drawer_init(&c->by_operation[k].drawer, &w->operations[k].distribution);
			c->by_operation[k].next = first;
		}
	}
	if (w->split && w->distribution.pattern == KEYS_SEQUENTIAL) {
		c->own_next = calloc(connections, sizeof(*c->own_next));
		if (!c->own_next)
			return -ENOMEM;
	}
	c->plain = !m->sequential && !w->growing && !w->ycsb && !w->split && !c->by_operation &&
		   w->distribution.pattern == KEYS_UNIFORM;
	return 0;
}

void chooser_free(struct chooser *c)
{
	free(c->own_next);
	free(c->by_operation);
	c->own_next = NULL;
	c->by_operation = NULL;
}

/* The keys of one connection: an equal part of the key space, at least one key. */
static uint64_t split_key(const struct workload *w, struct chooser *c, uint32_t connection)
{
	uint64_t number = c->first_connection + connection, all = c->all_connections;
	uint64_t low = (uint64_t)((unsigned __int128)w->keys * number / all);
	uint64_t high = (uint64_t)((unsigned __int128)w->keys * (number + 1) / all);
	uint64_t count = high > low ? high - low : 1;

	if (c->own_next)
		return low + c->own_next[connection]++ % count;
	return low + key_draw(&c->drawer, &c->keys, count);
}

static uint64_t own_key(const struct operation *o, struct chooser *c, struct operation_keys *k)
{
	uint64_t key = k->next;

	if (o->distribution.pattern != KEYS_SEQUENTIAL)
		return key_draw(&k->drawer, &c->keys, o->keys);
	k->next += c->stride;
	return key % o->keys;
}

uint64_t choose_key_slowly(const struct workload *w, const struct mix *m, struct chooser *c,
			   uint32_t operation, uint32_t connection)
{
	uint64_t items = w->keys, key;

	if (w->operations[operation].inserts) {
		key = key_base_take(w->base);
		return key == KEY_BASE_FULL ? key_base_count(w->base) : key;
	}
	if (w->operations[operation].own_keys)
		return own_key(&w->operations[operation], c, &c->by_operation[operation]);
	if (w->growing)
		items = key_base_count(w->base);
	if (items == 0)
		return 0;
	if (m->sequential || (w->distribution.pattern == KEYS_SEQUENTIAL && !w->split)) {
		key = c->next_key;
		c->next_key += c->stride;
		return m->sequential ? key : key % items;
	}
	if (w->ycsb)
		return ycsb_draw_key(&c->ycsb, &c->keys, items);
	if (w->split)
		return split_key(w, c, connection);
	return key_draw(&c->drawer, &c->keys, items);
}

/* ---- requests ---- */

int request_buffer_init(struct request_buffer *b, const struct workload *w, uint32_t batch,
			struct random_stream random)
{
	size_t longest = 64;

	for (uint32_t i = 0; i < w->operation_count; i++)
		for (uint32_t k = 0; k < w->operations[i].step_count; k++)
			if (w->operations[i].steps[k].length > longest)
				longest = w->operations[i].steps[k].length;
	*b = (struct request_buffer){.random = random};
	b->slots = malloc(sizeof(*b->slots) * (batch + 1u));
	if (!b->slots || !bytes_reserve(&b->bytes, longest * batch))
		return -ENOMEM;
	for (uint32_t i = 0; i <= batch; i++)
		b->slots[i] = (struct slot){.from = TEMPLATE_NONE};
	return 0;
}

/* Whether a part can be written again after its request was sent. */
static bool is_fixed_by_key(enum part_kind kind)
{
	return kind == PART_TEXT || kind == PART_KEY || kind == PART_KEY_NUMBER || kind == PART_TAG;
}

bool request_key(const struct workload *w, uint32_t operation, uint64_t key, size_t most, struct bytes *to,
		 bool *whole)
{
	const struct step *s = &w->operations[operation].steps[0];
	const struct command *c = &s->command;
	const struct request_values v = {.key = key};
	uint32_t index = s->route.kind == ROUTE_KEY ? s->route.word : c->row ? c->row->key : 0;
	const struct command_word *word;
	const char *recorded;
	size_t length = 0;

	to->length = 0;
	*whole = true;
	if (w->recorded.write) {
		recorded = w->recorded.key(w->recorded.replay, key, &length);
		*whole = length <= most;
		length = *whole ? length : most;
		if (!bytes_reserve(to, length))
			return false;
		bytes_add(to, recorded, length);
		return length > 0;
	}
	if (index == 0 || index >= c->word_count)
		return false;
	word = &c->words[index];
	for (uint32_t i = 0; i < word->count && to->length <= most; i++) {
		const struct command_part *p = &c->parts[word->first + i];
		struct drawn d;

		*whole = is_fixed_by_key(p->kind);
		if (!*whole)
			break;
		d = draw_part(p, &w->fill, &v, NULL);
		if (!bytes_reserve(to, d.length))
			return false;
		write_part(p, &d, &w->fill, &v, to, NULL);
	}
	*whole = *whole && to->length <= most;
	to->length = to->length < most ? to->length : most;
	return to->length > 0;
}

void request_buffer_free(struct request_buffer *b)
{
	free(b->bytes.at);
	free(b->slots);
	memset(b, 0, sizeof(*b));
}

size_t request_put_slowly(struct request_buffer *b, const struct workload *w, uint32_t slot, size_t at,
			  const struct step *s, uint16_t number, const struct request_values *v)
{
	struct slot *place = &b->slots[slot];

	b->bytes.length = at;
	/* It may overlap the following slots; they are rewritten as they are filled. */
	place[1].from = TEMPLATE_NONE;
	if (!s->bytes && w->recorded.write) {
		place->from = TEMPLATE_NONE;
		return w->recorded.write(w->recorded.replay, number / STEPS_MAX == w->select, v->key,
					 &b->bytes)
			   ? b->bytes.length
			   : 0;
	}
	if (!s->bytes) {
		struct request_values drawn = *v;

		place->from = TEMPLATE_NONE;
		if (s->command.once)
			drawn.seed = random_next(&b->random);
		return protocol_of(w->protocol)
			       ->write(&s->command, &w->fill, &drawn, &b->random, &b->bytes, NULL)
			   ? b->bytes.length
			   : 0;
	}
	if (!bytes_reserve(&b->bytes, s->length))
		return 0;
	memcpy(b->bytes.at + at, s->bytes, s->length);
	*place = (struct slot){(uint32_t)at, number};
	for (uint32_t i = 0; i < s->patches.count; i++)
		patch_apply(&s->patches.list[i], &w->fill, v, &b->random, b->bytes.at + at);
	return at + s->length;
}

/* The scanner has already found the reply well-formed, so its content needs no further validation. */

struct reply_buffer *reply_buffer_new(const struct workload *w)
{
	struct reply_buffer *g = calloc(1, sizeof(*g));
	bool cursor = false;

	for (uint32_t i = 0; i < w->operation_count; i++)
		cursor |= w->operations[i].cursor;
	if (g && cursor && !(g->cursors = calloc(w->operation_count, sizeof(*g->cursors)))) {
		free(g);
		g = NULL;
	}
	return g;
}

void reply_buffer_free(struct reply_buffer *g)
{
	if (g) {
		free(g->reply.at);
		free(g->cursors);
	}
	free(g);
}

void reply_buffer_add(struct reply_buffer *g, const char *from, const char *to)
{
	size_t count = (size_t)(to - from);

	if (g->overflow || g->reply.length + count > REPLY_BUFFER_BYTES_MAX ||
	    !bytes_reserve(&g->reply, count)) {
		g->overflow = true;
		return;
	}
	bytes_add(&g->reply, from, count);
}

void reply_buffer_reset(struct reply_buffer *g)
{
	g->reply.length = 0;
	g->overflow = false;
}

int64_t reply_buffer_check_value(const struct reply_buffer *g, const struct workload *w, uint64_t key)
{
	uint64_t seed = value_seed_of_key(key);
	uint32_t wanted = value_size(&w->values, seed), common;
	size_t at, length;
	int64_t wrong;

	if (g->overflow || !protocol_of(w->protocol)->find_value(g->reply.at, g->reply.length, &at, &length))
		return -2;
	common = length < wanted ? (uint32_t)length : wanted;
	wrong = value_check(&w->values, seed, 0, g->reply.at + at, common);
	return wrong >= 0 || length == wanted ? wrong : (int64_t)common;
}

uint64_t reply_buffer_number(const struct reply_buffer *g)
{
	return g->reply.length > 1 ? reply_number(g->reply.at + 1, g->reply.at + g->reply.length) : 0;
}

/* "*2", a string with the cursor, and an array. */
void reply_buffer_take_cursor(struct reply_buffer *g, uint32_t operation, uint64_t key)
{
	static const char head[] = "*2\r\n$";
	const char *p = g->reply.at;
	struct scan_cursor *c = &g->cursors[operation];
	char *after;
	size_t length;

	c->length = 0;
	c->key = key;
	if (g->overflow || g->reply.length < sizeof(head) + 4 || memcmp(p, head, sizeof(head) - 1) != 0)
		return;
	length = strtoull(p + sizeof(head) - 1, &after, 10);
	p = after + 2;
	if (length == 0 || length > sizeof(c->text) || (length == 1 && *p == '0'))
		return;
	memcpy(c->text, p, length);
	c->length = (uint32_t)length;
}

void reply_buffer_take_keys(struct reply_buffer *g)
{
	const char *p = g->reply.at, *end = p + g->reply.length;
	uint64_t count;
	char *after;

	g->captured = 0;
	if (g->overflow || g->reply.length < 4 || *p != '*')
		return;
	count = strtoull(p + 1, &after, 10);
	p = after + 2;
	for (uint64_t k = 0; k < count && k < YCSB_SCAN_MAX && p < end && *p == '$'; k++) {
		size_t length = strtoull(p + 1, &after, 10);

		p = after + 2;
		g->captured_at[g->captured] = (uint32_t)(p - g->reply.at);
		g->captured_length[g->captured++] = (uint32_t)length;
		p += length + 2;
	}
}
