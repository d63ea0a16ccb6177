/* SPDX-License-Identifier: MIT */
/* From commands to records: who sent it, when, to which database, under which name it is counted, and whether
 * it is sent at all. */
#include "replay.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "random.h"
#include "replay_store.h"

#define SECOND_NS 1000000000ull
enum { NAMES_MAX = 4096, OTHER_NAME = NAMES_MAX, SLOTS_MIN = 1024 };

const char *const replay_format_names[] = {"", "monitor", "aof", "csv"};

/* Names of commands, or of clients: a hash table of numbers, by order of appearance. */
struct table {
	uint32_t *slots; /* number + 1; 0: free */
	uint32_t slot_count, count;
};

struct client {
	struct replay_word name;
	uint32_t database;
};

struct name {
	char text[OPERATION_NAME];
	uint64_t count;
	bool harmful; /* something in the list of harm begins with it */
	bool selects;
	uint32_t operation;
};

struct load {
	struct replay *r;
	const struct harm_allowed *allowed;
	struct table clients_table, names_table;
	struct client *clients;
	struct name *names;
	uint32_t client_room, record_room;
	uint64_t first_ns, last_ns; /* REPLAY_NO_TIME: none yet */
};

/* ---- tables ---- */

static uint64_t hash_of(const char *at, size_t length)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)at[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* Clients may be many. */
static bool grow_clients(struct table *t, const struct client *clients)
{
	uint32_t count = t->slot_count ? t->slot_count * 2 : SLOTS_MIN;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t at = hash_of(clients[i].name.at, clients[i].name.length);

		while (slots[at & (count - 1)])
			at++;
		slots[at & (count - 1)] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = count;
	return true;
}

/* The client's entry, made if it is new; NULL: out of memory. */
static struct client *find_client(struct load *l, const struct replay_word *w)
{
	struct table *t = &l->clients_table;
	uint64_t at = hash_of(w->at, w->length);
	char *copy;

	if (t->count * 2 >= t->slot_count && !grow_clients(t, l->clients))
		return NULL;
	for (uint32_t slot; (slot = t->slots[at & (t->slot_count - 1)]); at++) {
		struct client *c = &l->clients[slot - 1];

		if (c->name.length == w->length &&
		    (w->length == 0 || memcmp(c->name.at, w->at, w->length) == 0))
			return c;
	}
	if (t->count == l->client_room) {
		uint32_t room = l->client_room ? l->client_room * 2 : 256;
		struct client *grown = realloc(l->clients, room * sizeof(*grown));

		if (!grown)
			return NULL;
		l->clients = grown;
		l->client_room = room;
	}
	copy = replay_store_take(l->r->store, w->length);
	if (!copy)
		return NULL;
	if (w->length)
		memcpy(copy, w->at, w->length);
	l->clients[t->count] = (struct client){.name = {copy, w->length}};
	t->slots[at & (t->slot_count - 1)] = ++t->count;
	return &l->clients[t->count - 1];
}

static void add_name(struct load *l, const char *text)
{
	struct name *n = &l->names[l->names_table.count++];
	struct replay_word word = {text, strlen(text)};

	*n = (struct name){.selects = strcmp(text, "SELECT") == 0, .harmful = harm_begins(&word)};
	memcpy(n->text, text, word.length + 1);
}

/* The number of a command's name, in capitals and kept to letters that tables and JSON can show. */
static uint32_t find_name(struct load *l, const struct replay_word *w)
{
	struct table *t = &l->names_table;
	char text[OPERATION_NAME];
	size_t length = 0;
	uint64_t at;

	for (; length < w->length && length < sizeof(text) - 1; length++) {
		unsigned char x = (unsigned char)toupper((unsigned char)w->at[length]);
		text[length] = (char)(x > ' ' && x < 127 && x != '"' && x != '\\' ? x : '?');
	}
	if (length == 0)
		text[length++] = '?';
	text[length] = 0;
	at = hash_of(text, length);
	for (uint32_t slot; (slot = t->slots[at & (t->slot_count - 1)]); at++)
		if (strcmp(l->names[slot - 1].text, text) == 0)
			return slot - 1;
	if (t->count == NAMES_MAX)
		return OTHER_NAME;
	add_name(l, text);
	t->slots[at & (t->slot_count - 1)] = t->count;
	return t->count - 1;
}

/* ---- commands ---- */

static uint32_t decimal_digits(size_t n)
{
	uint32_t digits = 1;

	while (n >= 10) {
		n /= 10;
		digits++;
	}
	return digits;
}

/* The words as RESP. NULL: out of memory. */
static char *write_wire(struct load *l, const struct replay_item *item, size_t *length)
{
	size_t bytes = 1 + decimal_digits(item->word_count) + 2;
	char *out, *p;

	for (uint32_t i = 0; i < item->word_count; i++)
		bytes += 1 + decimal_digits(item->words[i].length) + 2 + item->words[i].length + 2;
	/* One more, for sprintf's 0. */
	out = p = replay_store_take(l->r->store, bytes + 1);
	if (!out)
		return NULL;
	p += sprintf(p, "*%u\r\n", item->word_count);
	for (uint32_t i = 0; i < item->word_count; i++) {
		p += sprintf(p, "$%zu\r\n", item->words[i].length);
		memcpy(p, item->words[i].at, item->words[i].length);
		p += item->words[i].length;
		memcpy(p, "\r\n", 2);
		p += 2;
	}
	*length = bytes;
	return out;
}

static struct replay_record *new_record(struct load *l)
{
	struct replay *r = l->r;

	if (r->count == l->record_room) {
		uint64_t room = l->record_room ? (uint64_t)l->record_room * 2 : 1024;
		struct replay_record *grown =
		    room > REPLAY_END ? NULL : realloc(r->records, room * sizeof(*grown));

		if (!grown)
			return NULL;
		r->records = grown;
		l->record_room = (uint32_t)room;
	}
	return &r->records[r->count];
}

/* When it is due; times that go back are taken for the one before. */
static uint64_t due_ns(struct load *l, uint64_t time_ns)
{
	if (time_ns == REPLAY_NO_TIME)
		return l->last_ns == REPLAY_NO_TIME ? 0 : l->last_ns - l->first_ns;
	if (l->first_ns == REPLAY_NO_TIME)
		l->first_ns = l->last_ns = time_ns;
	if (time_ns < l->last_ns)
		l->r->backwards++;
	else
		l->last_ns = time_ns;
	return l->last_ns - l->first_ns;
}

/* The database that a SELECT asks for, if that is one we can follow. */
static bool selected(const struct replay_item *item, uint32_t *database)
{
	char text[8];
	uint64_t number;

	if (item->word_count != 2 || item->words[1].length >= sizeof(text))
		return false;
	memcpy(text, item->words[1].at, item->words[1].length);
	text[item->words[1].length] = 0;
	if (!parse_count(text, 0, REPLAY_DATABASE_MAX, &number))
		return false;
	*database = (uint32_t)number;
	return true;
}

/* False: memory is short. */
static bool add_command(struct load *l, const struct replay_item *item)
{
	struct replay *r = l->r;
	uint32_t name = find_name(l, &item->words[0]), database = item->database;
	size_t length = item->wire.length;
	const char *bytes = item->wire.at;
	struct replay_record *record;
	struct client *client;
	bool selects = false;
	int harm = -1;

	if (item->scripted) {
		r->scripted++;
		return true;
	}
	if (name != OTHER_NAME && l->names[name].harmful)
		harm = harm_find(l->allowed, item);
	if (harm >= 0) {
		r->left_out[harm]++;
		return true;
	}
	client = find_client(l, &item->client);
	record = client ? new_record(l) : NULL;
	if (record && !bytes)
		bytes = write_wire(l, item, &length);
	if (!record || !bytes || length > UINT32_MAX)
		return false;
	if (name != OTHER_NAME && l->names[name].selects)
		selects = selected(item, &client->database);
	if (database == REPLAY_OWN_DATABASE || selects)
		database = client->database;
	if (name != OTHER_NAME)
		l->names[name].count++;
	*record = (struct replay_record){
	    .due_ns = due_ns(l, item->time_ns),
	    .bytes = bytes,
	    .length = (uint32_t)length,
	    .client = (uint32_t)(client - l->clients),
	    .next = name, /* until names have become operations */
	    .database = (uint16_t)(database < REPLAY_DATABASE_MAX ? database : REPLAY_DATABASE_MAX),
	    .selects = selects,
	};
	r->count++;
	return true;
}

/* ---- files ---- */

static int (*const readers[])(struct replay_reader *, struct replay_item *) = {
    [REPLAY_MONITOR] = replay_monitor_next,
    [REPLAY_AOF] = replay_aof_next,
    [REPLAY_CSV] = replay_csv_next,
};

/* Whether a file's first command can be read in this format. */
static bool begins_as(const struct replay_file *f, enum replay_format format)
{
	struct replay_reader reader;
	struct replay_item item;
	bool good;

	replay_reader_init(&reader, f->at, f->at + f->size);
	good = readers[format](&reader, &item) == 1;
	replay_reader_free(&reader);
	return good;
}

static enum replay_format tell_format(const struct replay_file *f)
{
	if (f->size == 0 || f->at[0] == '*' || f->at[0] == '#' ||
	    (f->size >= 5 && memcmp(f->at, "REDIS", 5) == 0))
		return REPLAY_AOF;
	if (begins_as(f, REPLAY_MONITOR))
		return REPLAY_MONITOR;
	return begins_as(f, REPLAY_CSV) ? REPLAY_CSV : REPLAY_BY_CONTENT;
}

/* Where the commands begin, behind an RDB; NULL, and a sentence: that can't be said. */
static const char *behind_preamble(struct load *l, const struct replay_file *f, bool base, char *error,
				   size_t size)
{
	struct rdb_facts facts;
	char why[160];
	size_t length;

	if (f->size < 5 || memcmp(f->at, "REDIS", 5) != 0)
		return f->at;
	length = rdb_length(f->at, f->at + f->size, &facts, why, sizeof(why));
	if (length == 0 && base) /* its commands are in files of their own */
		length = f->size;
	if (length == 0) {
		snprintf(error, size, "%s: the RDB preamble %s, so where its commands begin can't be told",
			 f->path, why);
		return NULL;
	}
	l->r->preamble_bytes += length;
	l->r->preamble.version = facts.version;
	l->r->preamble.keys += facts.keys;
	l->r->preamble.functions += facts.functions;
	return f->at + length;
}

static int note_damage(struct replay *r, const struct replay_file *f, const struct replay_reader *reader)
{
	char where[64] = "";

	if (r->format != REPLAY_AOF)
		snprintf(where, sizeof(where), "line %llu, ", (unsigned long long)reader->line);
	r->cut = reader->cut;
	return asprintf(&r->damage, "%s is damaged at %sbyte %zu: %s; the %u commands before it are replayed",
			f->path, where, (size_t)(reader->at - f->at), reader->why, r->count) < 0
		   ? -ENOMEM
		   : 0;
}

/* All commands of one file. `base`: further files follow. */
static int read_file(struct load *l, const struct replay_file *f, bool base, char *error, size_t size)
{
	const char *begin = behind_preamble(l, f, base, error, size);
	struct replay_reader reader;
	struct replay_item item;
	int more, rc = 0;

	if (!begin)
		return -EINVAL;
	replay_reader_init(&reader, f->at, f->at + f->size);
	reader.at = begin;
	while ((more = readers[l->r->format](&reader, &item)) > 0) {
		if (add_command(l, &item))
			continue;
		snprintf(error, size, "there is not enough memory for the %u commands of %s", l->r->count,
			 f->path);
		rc = -ENOMEM;
		break;
	}
	if (more < 0)
		rc = note_damage(l->r, f, &reader);
	replay_reader_free(&reader);
	return rc;
}

static int read_files(struct load *l, char *error, size_t size)
{
	struct replay *r = l->r;
	struct replay_store *s = r->store;
	int rc = 0;

	if (s->file_count > 1)
		r->format = REPLAY_AOF;
	if (r->format == REPLAY_BY_CONTENT)
		r->format = tell_format(&s->files[0]);
	if (r->format == REPLAY_BY_CONTENT) {
		snprintf(error, size,
			 "%s is neither a MONITOR capture, nor an append-only file, nor a CSV of "
			 "seconds,client,command,...; --replay-format says which, and then what is wrong "
			 "with it is said",
			 s->files[0].path);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < s->file_count && rc == 0 && !r->damage; i++)
		rc = read_file(l, &s->files[i], i + 1 < s->file_count, error, size);
	if (rc == 0 && r->count == 0) {
		snprintf(error, size, "%s has no command to replay%s%s", s->files[0].path,
			 r->damage	     ? ": "
			 : r->preamble_bytes ? ", only an RDB"
					     : "",
			 r->damage ? r->damage : "");
		rc = -ENODATA;
	}
	return rc;
}

/* ---- when all is read ---- */

static int by_count(const void *a, const void *b)
{
	const struct name *x = *(const struct name *const *)a, *y = *(const struct name *const *)b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->text, y->text);
}

/* The most frequent names become operations, the others share one. */
static int number_operations(struct load *l)
{
	struct replay *r = l->r;
	uint32_t count = l->names_table.count;
	struct name **sorted = malloc((count + 1u) * sizeof(struct name *));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &l->names[i];
	qsort(sorted, count, sizeof(struct name *), by_count);
	for (uint32_t i = 0; i < count && sorted[i]->count > 0; i++) {
		if (i < REPLAY_NAMES) {
			memcpy(r->names[i], sorted[i]->text, OPERATION_NAME);
			r->name_count++;
		}
		sorted[i]->operation = i < REPLAY_NAMES ? i : REPLAY_NAMES;
	}
	for (uint32_t i = 0; i < r->count; i++) {
		struct replay_record *record = &r->records[i];
		uint32_t operation =
		    record->next == OTHER_NAME ? REPLAY_NAMES : l->names[record->next].operation;

		r->others |= operation == REPLAY_NAMES;
		record->operation = (uint8_t)(operation == REPLAY_NAMES ? r->name_count : operation);
		record->next = REPLAY_END;
	}
	free(sorted);
	return 0;
}

/* An append-only file's times are whole seconds; its commands are spread over theirs. */
static void spread_seconds(struct replay *r)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i <= r->count; i++) {
		uint32_t n = i - first;

		if (i < r->count && r->records[i].due_ns == r->records[first].due_ns)
			continue;
		for (uint32_t k = 1; k < n; k++)
			r->records[first + k].due_ns += (uint64_t)((unsigned __int128)SECOND_NS * k / n);
		first = i;
	}
}

/* From the first command to where -l begins again: a usual gap behind the last. Never 0, or all rounds would
 * be due at once. */
static void set_span(struct replay *r)
{
	uint64_t last = r->count ? r->records[r->count - 1].due_ns : 0;

	r->span_ns = last + (r->count > 1 && last > 0 ? last / (r->count - 1) : SECOND_NS);
}

static void free_load(struct load *l)
{
	free(l->clients_table.slots);
	free(l->names_table.slots);
	free(l->clients);
	free(l->names);
}

int replay_load(struct replay **out, const char *path, enum replay_format format,
		const struct harm_allowed *allowed, char *error, size_t size)
{
	struct load l = {.allowed = allowed, .first_ns = REPLAY_NO_TIME, .last_ns = REPLAY_NO_TIME};
	int rc = -ENOMEM;

	snprintf(error, size, "there is not enough memory to read %s", path);
	*out = NULL;
	l.r = calloc(1, sizeof(*l.r));
	if (l.r)
		l.r->store = calloc(1, sizeof(*l.r->store));
	l.names = calloc(NAMES_MAX, sizeof(*l.names));
	/* Wide enough for all names, so that it needs no growing. */
	l.names_table.slot_count = 2 * NAMES_MAX;
	l.names_table.slots = calloc(l.names_table.slot_count, sizeof(*l.names_table.slots));
	if (l.r && l.r->store && l.names && l.names_table.slots) {
		l.r->format = format;
		l.r->speed = 1;
		rc = replay_files_open(l.r->store, path, error, size);
		if (rc == 0)
			rc = read_files(&l, error, size);
		if (rc == 0)
			rc = number_operations(&l);
	}
	if (rc) {
		replay_free(l.r);
		free_load(&l);
		return rc;
	}
	l.r->clients = l.clients_table.count;
	l.r->timed = l.first_ns != REPLAY_NO_TIME;
	if (l.r->format == REPLAY_AOF && l.r->timed)
		spread_seconds(l.r);
	set_span(l.r);
	if (l.r->format != REPLAY_AOF)
		replay_store_close_files(l.r->store);
	free_load(&l);
	*out = l.r;
	return 0;
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	replay_store_free(r->store);
	free(r->records);
	free(r->heads);
	free(r->damage);
	free(r);
}

void replay_limit(struct replay *r, uint64_t count)
{
	if (count < r->count)
		r->count = (uint32_t)count;
	set_span(r);
}

void replay_pace(struct replay *r, enum arrival arrival, double rate, uint64_t seed)
{
	struct pacing pacing;

	pacing_start(&pacing, arrival, rate, 0, 0, PACING_NEVER, UINT64_MAX, random_begin(seed, 0, 3));
	for (uint32_t i = 0; i < r->count; i++) {
		r->records[i].due_ns = pacing.due_ns;
		pacing_take(&pacing);
	}
	r->timed = r->paced = true;
	r->speed = 1;
	set_span(r);
}

int replay_share(struct replay *r, uint32_t connections)
{
	uint32_t *last = malloc(connections * sizeof(*last));

	free(r->heads);
	r->heads = malloc(connections * sizeof(*r->heads));
	r->connections = connections;
	if (!last || !r->heads) {
		free(last);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < connections; i++)
		last[i] = r->heads[i] = REPLAY_END;
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t c = r->records[i].client % connections;

		*(last[c] == REPLAY_END ? &r->heads[c] : &r->records[last[c]].next) = i;
		r->records[i].next = REPLAY_END;
		last[c] = i;
	}
	free(last);
	return 0;
}

bool replay_write(const struct replay *r, bool select, uint64_t number, struct bytes *to)
{
	char text[64];
	const struct replay_record *record = select ? NULL : &r->records[number];
	uint32_t digits = decimal_digits(number);
	size_t length = select ? (size_t)snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%u\r\n%llu\r\n",
						  digits, (unsigned long long)number)
			       : record->length;

	if (!bytes_reserve(to, length))
		return false;
	bytes_add(to, select ? text : record->bytes, length);
	return true;
}
