/* SPDX-License-Identifier: MIT */
/* From a file to a workload: detects the format, skips what precedes the commands, finds damage, and assigns
 * records to connections. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/commands.h"
#include "common/grow.h"
#include "common/hash.h"
#include "common/text.h"
#include "loadgen/replay.h"
#include "replay_parts.h"

const char *const replay_format_names[] = {"", "monitor", "aof", "csv"};

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

/* Where the commands begin, after an RDB. NULL and a sentence: unknown. */
static const char *behind_preamble(struct gather *g, const struct replay_file *f, bool base, char *error,
				   size_t size)
{
	struct rdb_facts facts;
	char why[160];
	size_t length;

	if (f->size < 5 || memcmp(f->at, "REDIS", 5) != 0)
		return f->at;
	length = rdb_length(f->at, f->at + f->size, &facts, why, sizeof(why));
	if (length == 0 && base) /* its commands are in separate files */
		length = f->size;
	if (length == 0) {
		snprintf(error, size, "%s: the RDB preamble %s, so the start of the commands is unknown",
			 f->path, why);
		return NULL;
	}
	g->r->preamble_bytes += length;
	g->r->preamble.version = facts.version;
	g->r->preamble.keys += facts.keys;
	g->r->preamble.functions += facts.functions;
	return f->at + length;
}

static int note_damage(struct replay *r, const struct replay_file *f, const struct replay_reader *reader)
{
	char where[64] = "";

	if (r->format != REPLAY_AOF)
		snprintf(where, sizeof(where), "line %llu, ", (unsigned long long)reader->line);
	r->cut = reader->cut;
	return asprintf(&r->damage, "%s is damaged at %sbyte %zu: %s. The %u commands before it are replayed",
			f->path, where, (size_t)(reader->at - f->at), reader->why, r->count) < 0
		   ? -ENOMEM
		   : 0;
}

/* All commands of one file. `base`: more files follow. */
static int read_file(struct gather *g, const struct replay_file *f, bool base, char *error, size_t size)
{
	const char *begin = behind_preamble(g, f, base, error, size);
	struct replay_reader reader;
	struct replay_item item;
	int more, rc = 0;

	if (!begin)
		return -EINVAL;
	replay_reader_init(&reader, f->at, f->at + f->size);
	reader.at = begin;
	while ((more = readers[g->r->format](&reader, &item)) > 0) {
		if (gather_add(g, &item))
			continue;
		snprintf(error, size, "not enough memory for the %u commands of %s", g->r->count, f->path);
		rc = -ENOMEM;
		break;
	}
	if (more < 0)
		rc = note_damage(g->r, f, &reader);
	replay_reader_free(&reader);
	return rc;
}

static int read_files(struct gather *g, char *error, size_t size)
{
	struct replay *r = g->r;
	struct replay_store *s = r->store;
	int rc = 0;

	if (s->file_count > 1)
		r->format = REPLAY_AOF;
	if (r->format == REPLAY_BY_CONTENT)
		r->format = tell_format(&s->files[0]);
	if (r->format == REPLAY_BY_CONTENT) {
		snprintf(
		    error, size,
		    "%s: format not recognized: neither a MONITOR capture, nor an append-only file, nor a "
		    "CSV file of seconds,client,command,... Set --replay-format to see what is wrong with it",
		    s->files[0].path);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < s->file_count && rc == 0 && !r->damage; i++)
		rc = read_file(g, &s->files[i], i + 1 < s->file_count, error, size);
	if (rc == 0 && r->count == 0) {
		snprintf(error, size, "%s has no commands to replay%s%s", s->files[0].path,
			 r->damage	     ? ": "
			 : r->preamble_bytes ? ", only an RDB"
					     : "",
			 r->damage ? r->damage : "");
		rc = -ENODATA;
	}
	return rc;
}

int replay_load(struct replay **out, const char *path, enum replay_format format,
		const struct harm_allowed *allowed, char *error, size_t size)
{
	struct replay *r = calloc(1, sizeof(*r));
	struct gather g = {0};
	int rc = -ENOMEM;

	snprintf(error, size, "not enough memory to read %s", path);
	*out = NULL;
	if (r)
		r->store = calloc(1, sizeof(*r->store));
	if (r && r->store)
		rc = gather_init(&g, r, allowed);
	if (rc == 0) {
		r->format = format;
		r->speed = 1;
		rc = replay_files_open(r->store, path, error, size);
	}
	if (rc == 0)
		rc = read_files(&g, error, size);
	if (rc == 0)
		rc = gather_finish(&g);
	gather_free(&g);
	if (rc) {
		replay_free(r);
		return rc;
	}
	if (r->format == REPLAY_AOF && r->timed)
		replay_spread_seconds(r);
	replay_set_span(r);
	if (r->format != REPLAY_AOF)
		replay_store_close_files(r->store);
	*out = r;
	return 0;
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	replay_store_free(r->store);
	free(r->records);
	free(r->slots);
	free(r->heads);
	free(r->damage);
	free(r);
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
		uint32_t c = r->records[i].lane % connections;

		*(last[c] == REPLAY_END ? &r->heads[c] : &r->records[last[c]].next) = i;
		r->records[i].next = REPLAY_END;
		last[c] = i;
	}
	free(last);
	return 0;
}

static bool write_bytes(const char *at, size_t length, struct bytes *to)
{
	if (!bytes_reserve(to, length))
		return false;
	bytes_add(to, at, length);
	return true;
}

static bool write_select(uint64_t database, struct bytes *to)
{
	char number[24], text[64];
	int digits = snprintf(number, sizeof(number), "%llu", (unsigned long long)database);
	size_t length =
	    (size_t)snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%d\r\n%s\r\n", digits, number);

	return write_bytes(text, length, to);
}

static bool write_request(const struct replay *r, bool own, uint64_t number, struct bytes *to)
{
	static const char discard[] = "*1\r\n$7\r\nDISCARD\r\n";
	const struct replay_record *record = &r->records[(uint32_t)number];

	if (own && number == REPLAY_DISCARD)
		return write_bytes(discard, sizeof(discard) - 1, to);
	if (own && number < REPLAY_AGAIN)
		return write_select(number, to);
	return write_bytes(record->bytes, record->length, to);
}

/* The number after a type byte, and *at after its line. False: no such line. */
static bool read_count(const char **at, const char *end, char type, size_t *count)
{
	const char *line = *at, *stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;

	if (!stop || *line != type)
		return false;
	*count = reply_number(line + 1, stop);
	*at = stop + 1;
	return true;
}

/* By the table of commands, as the recorder finds keys: a request was slow, which is no time to ask the
 * server. */
static const char *first_key(const struct replay *r, uint64_t number, size_t *length)
{
	const struct replay_record *record = number < r->count ? &r->records[number] : NULL;
	const char *at = record ? record->bytes : NULL, *end = record ? at + record->length : NULL;
	const struct command_row *row = NULL;
	size_t words = 0, bytes;

	*length = 0;
	if (!record || !read_count(&at, end, '*', &words))
		return "";
	for (size_t i = 0; i < words && read_count(&at, end, '$', &bytes); i++) {
		if (bytes + 2 > (size_t)(end - at))
			break;
		if (i == 0)
			row = commands_row(at, bytes);
		if (!row || row->key == 0)
			break;
		if (i == row->key) {
			*length = bytes;
			return at;
		}
		at += bytes + 2;
	}
	return "";
}

void replay_fill(const struct replay *r, struct workload *w)
{
	struct operation *select;

	w->recorded = (struct recorded){.replay = r, .write = write_request, .key = first_key};
	for (uint32_t i = 0; i < r->name_count; i++)
		workload_add_bare(w, r->names[i]);
	if (r->others)
		workload_add_bare(w, "OTHER");
	w->select = (uint8_t)w->operation_count;
	select = workload_add_bare(w, "(SELECT)");
	select->internal = true;
	select->step_count = 2; /* so that its answer takes the slow path */
}

/* A pass over millions of commands, so each costs two lookups and no separate allocation: texts go into the
 * store's chunks, and commands without RESP bytes in their file are formatted here instead of
 * during the load. */

enum { NAMES_MAX = 4096, OTHER_NAME = NAMES_MAX };

struct gather_client {
	struct replay_word name;
	uint32_t database, number; /* by order of appearance */
	UT_hash_handle hh;
};

struct gather_name {
	char text[OPERATION_NAME];
	uint64_t count;
	const struct command_row *row; /* NULL: it has none */
	uint32_t operation;
	UT_hash_handle hh;
};

int gather_init(struct gather *g, struct replay *r, const struct harm_allowed *allowed)
{
	*g = (struct gather){
	    .r = r, .allowed = allowed, .first_ns = REPLAY_NO_TIME, .last_ns = REPLAY_NO_TIME};
	g->names = calloc(NAMES_MAX, sizeof(*g->names));
	return g->names ? 0 : -ENOMEM;
}

void gather_free(struct gather *g)
{
	hash_free_all(struct gather_client, g->clients);
	HASH_CLEAR(hh, g->by_name);
	free(g->names);
}

/* The client's entry, created if it is new. NULL: out of memory. */
static struct gather_client *find_client(struct gather *g, const struct replay_word *w)
{
	struct gather_client *c;
	char *copy;

	HASH_FIND(hh, g->clients, w->at, w->length, c);
	if (c)
		return c;
	copy = replay_store_take(g->r->store, w->length);
	c = copy ? malloc(sizeof(*c)) : NULL;
	if (!c)
		return NULL;
	if (w->length)
		memcpy(copy, w->at, w->length);
	*c = (struct gather_client){.name = {copy, w->length}, .number = HASH_COUNT(g->clients)};
	HASH_ADD_KEYPTR(hh, g->clients, copy, w->length, c);
	if (hash_added(c))
		return c;
	free(c);
	return NULL;
}

/* NULL: out of memory. */
static struct gather_name *add_name(struct gather *g, const char *text)
{
	struct gather_name *n = &g->names[HASH_COUNT(g->by_name)];

	*n = (struct gather_name){.row = commands_row(text, strlen(text))};
	memcpy(n->text, text, strlen(text) + 1);
	HASH_ADD_STR(g->by_name, text, n);
	return hash_added(n) ? n : NULL;
}

/* The number of a command's name, in upper case and restricted to characters that tables and JSON can
 * show. */
static uint32_t find_name(struct gather *g, const struct replay_word *w)
{
	struct gather_name *n;
	char text[OPERATION_NAME];
	size_t length = 0;

	for (; length < w->length && length < sizeof(text) - 1; length++) {
		unsigned char x = (unsigned char)toupper((unsigned char)w->at[length]);
		text[length] = (char)(x > ' ' && x < 127 && x != '"' && x != '\\' ? x : '?');
	}
	if (length == 0)
		text[length++] = '?';
	text[length] = 0;
	HASH_FIND_STR(g->by_name, text, n);
	if (!n && HASH_COUNT(g->by_name) < NAMES_MAX)
		n = add_name(g, text);
	return n ? (uint32_t)(n - g->names) : OTHER_NAME;
}

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
static char *write_wire(struct gather *g, const struct replay_item *item, size_t *length)
{
	size_t bytes = 1 + decimal_digits(item->word_count) + 2;
	char *out, *p;

	for (uint32_t i = 0; i < item->word_count; i++)
		bytes += 1 + decimal_digits(item->words[i].length) + 2 + item->words[i].length + 2;
	/* One more, for sprintf's 0. */
	out = p = replay_store_take(g->r->store, bytes + 1);
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

static struct replay_record *new_record(struct gather *g)
{
	struct replay *r = g->r;

	if (r->count == REPLAY_END || !grow(&r->records, &g->record_room, r->count, sizeof(*r->records)))
		return NULL;
	return &r->records[r->count];
}

/* Its due time. A timestamp earlier than the previous one is replaced by that. */
static uint64_t due_ns(struct gather *g, uint64_t time_ns)
{
	if (time_ns == REPLAY_NO_TIME)
		return g->last_ns == REPLAY_NO_TIME ? 0 : g->last_ns - g->first_ns;
	if (g->first_ns == REPLAY_NO_TIME)
		g->first_ns = g->last_ns = time_ns;
	if (time_ns < g->last_ns)
		g->r->backwards++;
	else
		g->last_ns = time_ns;
	return g->last_ns - g->first_ns;
}

/* The database that a SELECT selects, if it is valid. */
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

static enum replay_part part_of(const struct command_row *row)
{
	unsigned flags = row ? row->flags : 0;

	return flags & COMMAND_WATCH	 ? REPLAY_WATCH
	       : flags & COMMAND_UNWATCH ? REPLAY_UNWATCH
	       : flags & COMMAND_MULTI	 ? REPLAY_MULTI
	       : flags & COMMAND_EXEC	 ? REPLAY_EXEC
					 : REPLAY_PLAIN;
}

bool gather_add(struct gather *g, const struct replay_item *item)
{
	struct replay *r = g->r;
	uint32_t name = find_name(g, &item->words[0]), database = item->database;
	/* There may be more names than the table keeps, and those may be harmful, too. */
	const struct command_row *row =
	    name == OTHER_NAME ? commands_row(item->words[0].at, item->words[0].length) : g->names[name].row;
	size_t length = item->wire.length;
	const char *bytes = item->wire.at;
	struct replay_record *record;
	struct gather_client *client;
	bool selects = false;
	int harm = -1;

	if (item->scripted) {
		r->scripted++;
		return true;
	}
	if (row)
		harm = harm_find(g->allowed, item, row);
	if (harm >= 0) {
		r->left_out[harm]++;
		return true;
	}
	client = find_client(g, &item->client);
	record = client ? new_record(g) : NULL;
	if (record && !bytes)
		bytes = write_wire(g, item, &length);
	if (!record || !bytes || length > UINT32_MAX)
		return false;
	if (row && strcmp(row->name, "SELECT") == 0)
		selects = selected(item, &client->database);
	if (database == REPLAY_OWN_DATABASE || selects)
		database = client->database;
	if (name != OTHER_NAME)
		g->names[name].count++;
	*record = (struct replay_record){
	    .due_ns = due_ns(g, item->time_ns),
	    .bytes = bytes,
	    .length = (uint32_t)length,
	    .lane = client->number,
	    .next = name, /* until names have become operations */
	    .database = (uint16_t)(database < REPLAY_DATABASE_MAX ? database : REPLAY_DATABASE_MAX),
	    .selects = selects,
	    .part = part_of(row),
	};
	r->count++;
	return true;
}

static int by_count(const void *a, const void *b)
{
	const struct gather_name *x = *(const struct gather_name *const *)a,
				 *y = *(const struct gather_name *const *)b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->text, y->text);
}

int gather_finish(struct gather *g)
{
	struct replay *r = g->r;
	uint32_t count = HASH_COUNT(g->by_name);
	struct gather_name **sorted = malloc((count + 1u) * sizeof(struct gather_name *));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &g->names[i];
	qsort(sorted, count, sizeof(struct gather_name *), by_count);
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
		    record->next == OTHER_NAME ? REPLAY_NAMES : g->names[record->next].operation;

		r->others |= operation == REPLAY_NAMES;
		record->operation = (uint8_t)(operation == REPLAY_NAMES ? r->name_count : operation);
		record->next = REPLAY_END;
	}
	free(sorted);
	r->clients = HASH_COUNT(g->clients);
	r->timed = g->first_ns != REPLAY_NO_TIME;
	return 0;
}

/* Words point into one buffer, which is made as large as the command may need before the first word is
 * written. It is reused for later commands. */

#define SECOND_NS 1000000000ull
enum { SECONDS_DIGITS = 10 };

void replay_reader_init(struct replay_reader *r, const char *begin, const char *end)
{
	*r = (struct replay_reader){
	    .begin = begin, .at = begin, .end = end, .line = 1, .second_ns = REPLAY_NO_TIME};
}

void replay_reader_free(struct replay_reader *r)
{
	free(r->text.at);
	free(r->words);
	r->text = (struct replay_text){0};
	r->words = NULL;
}

int replay_damage(struct replay_reader *r, const char *at, bool cut, const char *why)
{
	r->at = at;
	r->cut = cut;
	snprintf(r->why, sizeof(r->why), "%s", why);
	return -1;
}

bool replay_words_begin(struct replay_reader *r, size_t bytes)
{
	struct replay_text *t = &r->text;
	size_t room = bytes + bytes / 2 + 64;

	r->word_count = 0;
	t->length = 0;
	/* At once: words point into it, so it must not move while they are gathered. */
	if (bytes > t->room || !t->at) {
		free(t->at);
		t->at = malloc(room);
		t->room = t->at ? room : 0;
		if (!t->at) {
			replay_damage(r, r->at, false, "not enough memory");
			return false;
		}
	}
	return true;
}

bool replay_words_add(struct replay_reader *r, const char *at, size_t length)
{
	if (r->word_count == REPLAY_WORDS_MAX ||
	    !grow(&r->words, &r->word_room, r->word_count, sizeof(*r->words))) {
		replay_damage(r, r->at, false, "more words than a command can have");
		return false;
	}
	r->words[r->word_count++] = (struct replay_word){at, length};
	return true;
}

bool replay_read_seconds(const char **at, const char *end, uint64_t *ns)
{
	const char *p = *at, *from = p;
	uint64_t value = 0, unit = SECOND_NS;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (p - from == SECONDS_DIGITS)
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	if (p == from)
		return false;
	value *= SECOND_NS;
	if (p < end && *p == '.') {
		for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
			unit /= 10;
			value += (uint64_t)(*p - '0') * unit;
		}
	}
	*ns = value;
	*at = p;
	return true;
}

/* What is omitted from a recording, as text and as JSON. */

/* The row of the next omitted command, those that lose data first; *n is 0 at the beginning. -1: there is
 * none. */
static int next_left_out(const struct replay *r, int *n)
{
	while (*n < (HARM_PROTOCOL + 1) * COMMAND_ROWS) {
		int row = *n % COMMAND_ROWS, harm = (*n)++ / COMMAND_ROWS;

		if (r->left_out[row] && commands_table[row].harm == harm)
			return row;
	}
	return -1;
}

void replay_describe(const struct replay *r, FILE *to)
{
	const char *before = "omitted: ";

	fprintf(to, "replayed from %s: %u command%s of %u client%s", replay_format_names[r->format], r->count,
		r->count == 1 ? "" : "s", r->clients, r->clients == 1 ? "" : "s");
	if (r->timed && r->count)
		fprintf(to, r->paced ? ", due over %.3f s" : ", recorded over %.3f s",
			(double)r->records[r->count - 1].due_ns * 1e-9);
	if (r->by_key)
		fputs(", in the order of each key", to);
	fputc('\n', to);
	if (r->preamble_bytes)
		fprintf(to,
			"skipped: an RDB of %" PRIu64 " bytes with %" PRIu64
			" key%s. Load it into the server first if the commands need its keys\n",
			r->preamble_bytes, r->preamble.keys, r->preamble.keys == 1 ? "" : "s");
	if (r->outside_sample)
		fprintf(to, "omitted by --replay-sample: %" PRIu64 " command%s\n", r->outside_sample,
			r->outside_sample == 1 ? "" : "s");
	if (r->unfinished)
		fprintf(to, "omitted: %" PRIu64 " command%s of transactions without EXEC or DISCARD\n",
			r->unfinished, r->unfinished == 1 ? "" : "s");
	if (r->scripted)
		fprintf(to, "omitted: %" PRIu64 " call%s from scripts, which the scripts repeat themselves\n",
			r->scripted, r->scripted == 1 ? "" : "s");
	for (int n = 0, row; (row = next_left_out(r, &n)) >= 0; before = ", ")
		fprintf(to, "%s%s %" PRIu64 " (%s)", before, commands_table[row].name, r->left_out[row],
			harm_reason(row));
	if (*before == ',')
		fprintf(to, ". To send them, use --replay-allow\n");
	if (r->backwards)
		fprintf(to, "timestamps earlier than the previous one, replaced by it: %" PRIu64 "\n",
			r->backwards);
}

void replay_describe_json(const struct replay *r, json_t *j)
{
	json_t *replay = json_put_object(j, "replay"), *left_out;

	json_put_text(replay, "format", replay_format_names[r->format]);
	json_put_count(replay, "commands", r->count);
	json_put_count(replay, "clients", r->clients);
	json_put_truth(replay, "timed", r->timed);
	json_put_number(replay, "speed", r->speed);
	json_put_number(replay, "recorded_s", r->count ? (double)r->records[r->count - 1].due_ns * 1e-9 : 0);
	left_out = json_put_object(replay, "left_out");
	for (int n = 0, row; (row = next_left_out(r, &n)) >= 0;)
		json_put_count(left_out, commands_table[row].name, r->left_out[row]);
	json_put_text(replay, "order",
		      replay_order_names[r->by_key ? REPLAY_ORDER_KEY : REPLAY_ORDER_CLIENT]);
	json_put_count(replay, "outside_sample", r->outside_sample);
	json_put_count(replay, "unfinished", r->unfinished);
	json_put_count(replay, "scripted", r->scripted);
	json_put_count(replay, "times_back", r->backwards);
	json_put_count(replay, "preamble_bytes", r->preamble_bytes);
	json_put_count(replay, "preamble_keys", r->preamble.keys);
	json_put_text(replay, "damage", r->damage ? r->damage : "");
}
