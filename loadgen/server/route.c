/* SPDX-License-Identifier: MIT */
/* To which server a command goes: its keys, their slots or their place in a ring.
 *
 * The server is asked for the position of a command's keys once before the load, with an example of its words
 * (cluster.h). So commands of modules and future versions need no list here. For each request the key is
 * formatted an additional time, by the same code as requests, only to hash it. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/hash.h"
#include "loadgen/cluster.h"
#include "loadgen/net.h"
#include "loadgen/nodes.h"
#include "loadgen/protocol.h"
#include "recording/recording.h"

/* ---- once, before the load ---- */

/* The command's words as sent for key 0, each with a unique mark in place of its number. Freed with
 * free_words. */
static char **sample_words(const struct command *c)
{
	char **words = calloc(c->word_count, sizeof(*words));

	for (uint32_t i = 0; words && i < c->word_count; i++) {
		size_t size = 0;
		FILE *f = open_memstream(&words[i], &size);

		for (uint32_t k = 0; f && k < c->words[i].count; k++) {
			const struct command_part *p = &c->parts[c->words[i].first + k];

			if (p->kind == PART_TEXT)
				fwrite(p->text, 1, p->length, f);
			else
				fprintf(f, "%u", i + 1);
		}
		if (f)
			fclose(f);
	}
	return words;
}

static void free_words(char **words, uint32_t count)
{
	for (uint32_t i = 0; words && i < count; i++)
		free(words[i]);
	free(words);
}

/* The first key of a command that only the server finds, with an example. 0: none. */
static uint32_t ask_key(struct command_table *t, const struct command *c, char **sample)
{
	const char *const *words = (const char *const *)sample;
	const redisReply *key;
	redisReply *r = command_table_ask(t, c->word_count, words, NULL, &key);
	uint32_t found = 0;

	for (uint32_t i = 1; key && i < c->word_count && !found; i++)
		if (strcmp(sample[i], key->str) == 0)
			found = i;
	if (r)
		freeReplyObject(r);
	return found;
}

/* What the server reports about the command, and the word of its first key, 0 without one. Returns
 * command_keys.known. */
static int ask_server(struct command_table *t, const struct command *c, struct route *route, uint32_t *first)
{
	char **sample = sample_words(c);
	const char *const *words = (const char *const *)sample;
	const struct command_keys *k = sample ? command_table_find(t, c->word_count, words, NULL) : NULL;

	if (k) {
		route->reads = k->reads;
		route->writes = k->writes;
		*first = command_keys_first(k, c->word_count, words, NULL);
		if (!*first && k->ask)
			*first = ask_key(t, c, sample);
	}
	free_words(sample, c->word_count);
	return k ? k->known : -1;
}

bool route_settle_word(struct command *c, uint32_t word)
{
	struct command_part *parts = &c->parts[c->words[word].first];

	for (uint32_t i = 0; i < c->words[word].count; i++) {
		enum part_kind kind = parts[i].kind;

		if (kind != PART_TEXT && kind != PART_KEY && kind != PART_KEY_NUMBER && kind != PART_TAG &&
		    kind != PART_CAPTURED && kind != PART_INT && kind != PART_OTHER_KEY)
			return false;
	}
	for (uint32_t i = 0; i < c->words[word].count; i++) {
		if (parts[i].kind == PART_INT)
			parts[i].kind = PART_KEY_NUMBER;
		else if (parts[i].kind == PART_OTHER_KEY)
			parts[i].kind = PART_KEY;
	}
	return true;
}

static int prepare_step(const struct workload *w, struct step *s, struct command_table *table, bool several,
			char *error, size_t size)
{
	const struct product *product = protocol_of(w->protocol)->product;
	struct command *c = &s->command;
	char name[COMMAND_NAME];
	uint32_t first = c->word_count > 1;
	int known = -1;

	command_name(c, name, sizeof(name));
	s->route = (struct route){.kind = ROUTE_ANY};
	if (product->reads)
		s->route.reads = c->row && c->row->flags & COMMAND_READS;
	else if (table)
		known = ask_server(table, c, &s->route, &first);
	if (known == 0) {
		snprintf(error, size, "the server has no command %s", name);
		return -EINVAL;
	}
	if (!several || first == 0 || first >= c->word_count)
		return 0;
	if (!route_settle_word(c, first)) {
		snprintf(error, size,
			 "the key of %s is not known before it is sent. With several servers, build the key "
			 "from text, __key__ and __tag__",
			 name);
		return -EINVAL;
	}
	s->route.kind = ROUTE_KEY;
	s->route.word = (uint16_t)first;
	return 0;
}

int route_prepare(struct workload *w, struct link *link, bool several, char *error, size_t size)
{
	struct command_table *table = link ? command_table_new(link) : NULL;
	int rc = 0;

	if (link && !table) {
		snprintf(error, size, "not enough memory for the commands");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->operation_count; i++)
		for (uint32_t k = 0; k < w->operations[i].step_count && rc == 0; k++)
			rc = prepare_step(w, &w->operations[i].steps[k], table, several, error, size);
	command_table_free(table);
	return rc;
}

/* ---- for each request ---- */

bool route_name(const struct workload *w, const struct step *s, uint64_t key, struct bytes *scratch)
{
	const struct command_word *word = &s->command.words[s->route.word];

	scratch->length = 0;
	for (uint32_t i = 0; i < word->count; i++) {
		const struct command_part *p = &s->command.parts[word->first + i];
		const struct request_values v = {.key = key};
		struct drawn d = draw_part(p, &w->fill, &v, NULL);

		if (!bytes_reserve(scratch, d.length))
			return false;
		write_part(p, &d, &w->fill, &v, scratch, NULL);
	}
	return true;
}

uint32_t route_slot(const struct nodes *n, const struct workload *w, const struct step *s, uint64_t key,
		    struct bytes *scratch)
{
	if (n->kind == DEPLOYMENT_PRIMARY)
		return 0;
	if (s->route.kind == ROUTE_ANY || !route_name(w, s, key, scratch))
		return ROUTE_ANYWHERE;
	return n->kind == DEPLOYMENT_CLUSTER ? cluster_slot(scratch->at, scratch->length)
					     : ketama_server(&n->ketama, scratch->at, scratch->length);
}

/* CRC16 one byte at a time, with a table that is computed once. */

static uint16_t table[256];

static void make_table(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint16_t crc = (uint16_t)(i << 8);

		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
		table[i] = crc;
	}
}

uint16_t crc16(const char *bytes, size_t length)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint16_t crc = 0;

	pthread_once(&once, make_table);
	for (size_t i = 0; i < length; i++)
		crc = (uint16_t)(crc << 8 ^ table[(crc >> 8 ^ (uint8_t)bytes[i]) & 0xff]);
	return crc;
}

uint16_t cluster_slot(const char *key, size_t length)
{
	const char *open = memchr(key, '{', length), *close;

	if (open) {
		close = memchr(open + 1, '}', length - (size_t)(open + 1 - key));
		if (close && close > open + 1) {
			length = (size_t)(close - open - 1);
			key = open + 1;
		}
	}
	return crc16(key, length) % CLUSTER_SLOTS;
}

/* Points are a sorted array that never changes, so a key is found by bisection. Signed bytes and truncated
 * 64-bit constants look odd, but twemproxy computes its hashes this way. */

enum { POINTS_PER_SERVER = 160, POINTS_PER_DIGEST = 4, DIGEST_BYTES = 16 };
/* Names omit this port. */
enum { PLAIN_PORT = 11211 };

static int by_value(const void *a, const void *b)
{
	const struct ketama_point *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	/* Never seen in practice; qsort alone would leave the order undefined. */
	return (int)x->server - (int)y->server;
}

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void ketama_name(const struct server_address *a, char *out, size_t size)
{
	if (a->socket)
		snprintf(out, size, "%s", a->socket);
	else if (a->port == PLAIN_PORT)
		snprintf(out, size, "%s", a->host);
	else
		snprintf(out, size, "%s:%u", a->host, a->port);
}

int ketama_init(struct ketama *k, const char *const *names, uint32_t count)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	char text[512];

	*k = (struct ketama){.points = calloc((size_t)count * POINTS_PER_SERVER, sizeof(*k->points))};
	if (!k->points)
		return -ENOMEM;
	for (uint32_t server = 0; server < count; server++) {
		for (int i = 0; i < POINTS_PER_SERVER / POINTS_PER_DIGEST; i++) {
			int length = snprintf(text, sizeof(text), "%s-%d", names[server], i);

			if (!EVP_Digest(text, (size_t)length, digest, NULL, EVP_md5(), NULL)) {
				ketama_free(k);
				return -EIO;
			}
			for (int p = 0; p < POINTS_PER_DIGEST; p++)
				k->points[k->count++] =
				    (struct ketama_point){word_at(digest + 4 * p), (uint16_t)server};
		}
	}
	qsort(k->points, k->count, sizeof(*k->points), by_value);
	return 0;
}

void ketama_free(struct ketama *k)
{
	free(k->points);
	*k = (struct ketama){0};
}

/* A byte of 128 or more is negative, as a char is on x86. */
uint32_t ketama_hash(const char *key, size_t length)
{
	uint32_t hash = (uint32_t)0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint32_t)(signed char)key[i]) * (uint32_t)0x100000001b3u;
	return hash;
}

uint32_t ketama_server(const struct ketama *k, const char *key, size_t length)
{
	uint32_t hash = ketama_hash(key, length), low = 0, high = k->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (k->points[middle].value < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return k->points[low == k->count ? 0 : low].server;
}

/* The position of keys is fixed here, because a proxy has no COMMAND. All commands that twemproxy forwards
 * have the key in the second word, except scripts. A command with several keys may go to several servers. */

void proxy_ring_name(const struct options *o, uint32_t i, char *out, size_t size)
{
	if (o->behind_names[i])
		snprintf(out, size, "%s", o->behind_names[i]);
	else
		ketama_name(&o->behind[i], out, size);
}

int proxy_ring_prepare(struct ketama *ring, const struct options *o, struct workload *w, char *error,
		       size_t size)
{
	char names[BEHIND_MAX][300];
	const char *list[BEHIND_MAX];
	const struct product *product = protocol_of(w->protocol)->product;
	int rc;

	for (uint32_t i = 0; i < w->operation_count; i++) {
		struct step *s = &w->operations[i].steps[0];

		s->route = (struct route){.kind = ROUTE_ANY};
		if (w->operations[i].step_count == 1 && product_one_key(product, &s->command) &&
		    route_settle_word(&s->command, 1))
			s->route = (struct route){.kind = ROUTE_KEY, .word = 1};
	}
	for (uint32_t i = 0; i < o->behind_count; i++) {
		proxy_ring_name(o, i, names[i], sizeof(names[i]));
		list[i] = names[i];
	}
	rc = ketama_init(ring, list, o->behind_count);
	if (rc)
		snprintf(error, size, "cannot hash keys for the servers of --behind: %s",
			 rc == -ENOMEM ? "not enough memory" : "this host's OpenSSL offers no MD5");
	return rc;
}

uint8_t proxy_ring_server(const struct ketama *ring, const struct workload *w, unsigned operation,
			  uint64_t key, struct bytes *scratch)
{
	const struct step *s = &w->operations[operation].steps[0];

	if (s->route.kind != ROUTE_KEY || !route_name(w, s, key, scratch))
		return 0;
	return (uint8_t)(ketama_server(ring, scratch->at, scratch->length) + 1);
}

/* A recording has millions of commands of some dozens of names, so answers are kept in a tree by name. The
 * name of a subcommand is "XGROUP|CREATE", as servers since Redis 7 name it. */

enum { NAME_BYTES = 64 };

/* ---- the answer to COMMAND INFO ---- */

static bool is_array(const redisReply *r, size_t elements)
{
	return r && r->type == REDIS_REPLY_ARRAY && r->elements >= elements;
}

static const char *text_of(const redisReply *r)
{
	return r && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) ? r->str : "";
}

/* The value of a name in a list of names and values. */
static const redisReply *value_of(const redisReply *r, const char *name)
{
	for (size_t i = 0; is_array(r, i + 2); i += 2)
		if (strcmp(text_of(r->element[i]), name) == 0)
			return r->element[i + 1];
	return NULL;
}

static int32_t number_of(const redisReply *r, const char *name)
{
	const redisReply *value = value_of(r, name);

	return value && value->type == REDIS_REPLY_INTEGER ? (int32_t)value->integer : 0;
}

/* False: a kind of specification that says nothing. */
static bool read_spec(const redisReply *r, struct key_spec *s)
{
	const redisReply *begin = value_of(r, "begin_search"), *find = value_of(r, "find_keys");
	const redisReply *begin_spec = value_of(begin, "spec"), *find_spec = value_of(find, "spec");
	const char *begin_type = text_of(value_of(begin, "type")),
		   *find_type = text_of(value_of(find, "type"));

	*s = (struct key_spec){0};
	if (strcmp(begin_type, "index") == 0) {
		s->from = number_of(begin_spec, "index");
	} else if (strcmp(begin_type, "keyword") == 0) {
		snprintf(s->keyword, sizeof(s->keyword), "%s", text_of(value_of(begin_spec, "keyword")));
		s->from = number_of(begin_spec, "startfrom");
	}
	if (strcmp(find_type, "keynum") == 0) {
		s->counted = true;
		s->count_at = number_of(find_spec, "keynumidx");
		s->first = number_of(find_spec, "firstkey");
	}
	return s->from != 0 && (s->counted || strcmp(find_type, "range") == 0);
}

/* What follows a specification that is understood matters only if that finds no key: it is asked for then. */
static void read_specs(struct command_keys *k, const redisReply *specs)
{
	size_t i = 0;

	while (i < specs->elements && k->spec_count < KEY_SPECS_MAX &&
	       read_spec(specs->element[i], &k->specs[k->spec_count])) {
		k->spec_count++;
		i++;
	}
	k->ask = i < specs->elements;
}

void command_keys_read(struct command_keys *k, const struct redisReply *answer)
{
	const redisReply *info = is_array(answer, 1) ? answer->element[0] : NULL;
	const redisReply *flags;

	*k = (struct command_keys){.known = -1, .spec_count = 1, .specs = {{.from = 1}}};
	if (info && info->type == REDIS_REPLY_NIL)
		*k = (struct command_keys){0};
	if (!is_array(info, 6))
		return;
	*k = (struct command_keys){.known = 1};
	flags = info->element[2];
	for (size_t i = 0; is_array(flags, i + 1); i++) {
		k->reads |= strcasecmp(text_of(flags->element[i]), "readonly") == 0;
		k->writes |= strcasecmp(text_of(flags->element[i]), "write") == 0;
		k->ask |= strcasecmp(text_of(flags->element[i]), "movablekeys") == 0;
	}
	k->container = is_array(info, 10) && is_array(info->element[9], 1);
	if (is_array(info, 9) && is_array(info->element[8], 1)) {
		read_specs(k, info->element[8]);
	} else if (info->element[3]->integer > 0) {
		k->ask = false;
		k->specs[k->spec_count++].from = (int32_t)info->element[3]->integer;
	}
}

/* ---- the first key ---- */

struct words {
	uint32_t count;
	const char *const *at;
	const size_t *lengths;
};

static size_t length_of(const struct words *w, uint32_t i)
{
	return w->lengths ? w->lengths[i] : strlen(w->at[i]);
}

/* Where the keys of a specification begin. 0: nowhere. */
static int64_t beginning(const struct key_spec *s, const struct words *w)
{
	int64_t step = s->from > 0 ? 1 : -1, i = s->from > 0 ? s->from : (int64_t)w->count + s->from;
	size_t length = strlen(s->keyword);

	if (!length)
		return i;
	for (; i > 0 && i < w->count; i += step)
		if (length_of(w, (uint32_t)i) == length && strncasecmp(w->at[i], s->keyword, length) == 0)
			return i + 1;
	return 0;
}

/* Whether the word is a number above 0. */
static bool counts_keys(const struct words *w, int64_t i)
{
	size_t length;

	if (i <= 0 || i >= w->count)
		return false;
	length = length_of(w, (uint32_t)i);
	for (size_t k = 0; k < length; k++)
		if (w->at[i][k] >= '1' && w->at[i][k] <= '9')
			return true;
	return false;
}

uint32_t command_keys_first(const struct command_keys *k, uint32_t count, const char *const *words,
			    const size_t *lengths)
{
	const struct words w = {count, words, lengths};

	for (uint32_t i = 0; i < k->spec_count; i++) {
		const struct key_spec *s = &k->specs[i];
		int64_t at = beginning(s, &w);

		if (at > 0 && s->counted)
			at = counts_keys(&w, at + s->count_at) ? at + s->first : 0;
		if (at > 0 && at < count)
			return (uint32_t)at;
	}
	return 0;
}

/* ---- the server's commands ---- */

struct command_entry {
	char name[NAME_BYTES]; /* in upper case */
	struct command_keys keys;
	UT_hash_handle hh;
};

struct command_table {
	struct link *link;
	struct command_entry *by_name; /* hash table */
};

struct command_table *command_table_new(struct link *l)
{
	struct command_table *t = calloc(1, sizeof(*t));

	if (t)
		t->link = l;
	return t;
}

void command_table_free(struct command_table *t)
{
	if (!t)
		return;
	hash_free_all(struct command_entry, t->by_name);
	free(t);
}

static const struct command_keys *find_name(struct command_table *t, const char *name)
{
	const char *const words[] = {"COMMAND", "INFO", name};
	struct command_entry *e;
	redisReply *answer;

	HASH_FIND_STR(t->by_name, name, e);
	if (e)
		return &e->keys;
	answer = link_ask(t->link, 3, words);
	e = answer ? calloc(1, sizeof(*e)) : NULL;
	if (e) {
		snprintf(e->name, sizeof(e->name), "%s", name);
		command_keys_read(&e->keys, answer);
	}
	if (answer)
		freeReplyObject(answer);
	if (e)
		HASH_ADD_STR(t->by_name, name, e);
	if (!e || !hash_added(e)) {
		free(e);
		return NULL;
	}
	return &e->keys;
}

/* Adds a word to a name. A longer one is cut, so the server does not know it. */
static void add_to_name(char name[NAME_BYTES], const struct words *w, uint32_t word)
{
	size_t at = strlen(name), length = length_of(w, word);

	for (size_t i = 0; i < length && at + 1 < NAME_BYTES; i++)
		name[at++] = w->at[word][i] ? (char)toupper((unsigned char)w->at[word][i]) : '?';
	name[at] = 0;
}

const struct command_keys *command_table_find(struct command_table *t, uint32_t count,
					      const char *const *words, const size_t *lengths)
{
	const struct words w = {count, words, lengths};
	char name[NAME_BYTES] = "";
	const struct command_keys *k, *part;

	add_to_name(name, &w, 0);
	k = find_name(t, name);
	if (!k || !k->container || count < 2 || strlen(name) + 2 > NAME_BYTES)
		return k;
	strcat(name, "|");
	add_to_name(name, &w, 1);
	part = find_name(t, name);
	return !part || part->known == 1 ? part : k;
}

struct redisReply *command_table_ask(struct command_table *t, uint32_t count, const char *const *words,
				     const size_t *lengths, const struct redisReply **key)
{
	const char **all = calloc(count + 2u, sizeof(*all));
	size_t *sizes = calloc(count + 2u, sizeof(*sizes));
	redisReply *answer = NULL;
	char *text = NULL;
	long long length = -1;

	*key = NULL;
	if (all && sizes) {
		const struct words w = {count, words, lengths};

		all[0] = "COMMAND";
		all[1] = "GETKEYS";
		sizes[0] = sizes[1] = 7;
		for (uint32_t i = 0; i < count; i++) {
			all[i + 2] = words[i];
			sizes[i + 2] = length_of(&w, i);
		}
		length = redisFormatCommandArgv(&text, (int)count + 2, all, sizes);
	}
	if (length > 0 && link_send(t->link, text, (size_t)length, ft_now_ns() + LINK_ANSWER_NS) == 0)
		answer = link_answer(t->link, "COMMAND GETKEYS");
	redisFreeCommand(text);
	free(all);
	free(sizes);
	if (is_array(answer, 1) && answer->element[0]->type == REDIS_REPLY_STRING)
		*key = answer->element[0];
	return answer;
}
