/* SPDX-License-Identifier: MIT */
/* From a file to a workload: detects the format, skips what precedes the commands, finds damage, and assigns
 * records to connections. */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_gather.h"
#include "replay_store.h"
#include "replay_times.h"

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

void replay_fill(const struct replay *r, struct workload *w)
{
	struct operation *select;

	w->recorded = (struct recorded){.replay = r, .write = write_request};
	for (uint32_t i = 0; i < r->name_count; i++)
		workload_add_bare(w, r->names[i]);
	if (r->others)
		workload_add_bare(w, "OTHER");
	w->select = (uint8_t)w->operation_count;
	select = workload_add_bare(w, "(SELECT)");
	select->internal = true;
	select->step_count = 2; /* so that its answer takes the slow path */
}
