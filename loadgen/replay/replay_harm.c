/* SPDX-License-Identifier: MIT */
/* Which commands are omitted (common/commands.h says why), and what depends on the keys of recorded commands.
 * A blocking command is omitted only if its time-out is 0, because it would wait without limit. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loadgen/protocol.h"
#include "loadgen/replay.h"
#include "replay_parts.h"

static const char *const reasons[] = {
    [HARM_LOSES_DATA] = "loses data",
    [HARM_STOPS_SERVER] = "can stop the server",
    [HARM_CHANGES_SERVER] = "changes the server",
    [HARM_CHANGES_ROLE] = "changes the replication topology",
    [HARM_CUTS_CLIENTS] = "affects other clients",
    [HARM_LOADS_DISK] = "writes or sends the whole data set",
    [HARM_LOSES_EVIDENCE] = "clears the server's logs or statistics",
    [HARM_BLOCKS] = "blocks without limit",
    [HARM_PROTOCOL] = "changes the replies on its connection",
};

static bool is(const struct replay_word *w, const char *name)
{
	return w->length == strlen(name) && strncasecmp(w->at, name, w->length) == 0;
}

/* "0", "0.0", "00": no time-out, as servers interpret it. */
static bool is_zero(const struct replay_word *w)
{
	for (size_t i = 0; i < w->length; i++)
		if (w->at[i] != '0' && w->at[i] != '.')
			return false;
	return w->length > 0;
}

static bool waits_for_ever(const struct replay_item *item, unsigned flags)
{
	const struct replay_word *w = item->words;

	if (flags & COMMAND_BLOCKING)
		return item->word_count > 1 &&
		       is_zero(&w[flags & COMMAND_TIMEOUT_FIRST ? 1 : item->word_count - 1]);
	for (uint32_t i = 1; i + 1 < item->word_count && !is(&w[i], "STREAMS"); i++)
		if (is(&w[i], "BLOCK"))
			return is_zero(&w[i + 1]);
	return false;
}

int harm_find(const struct harm_allowed *allowed, const struct replay_item *item,
	      const struct command_row *row)
{
	const struct command_row *part =
	    item->word_count > 1 ? commands_part(row, item->words[1].at, item->words[1].length) : NULL;
	int i = (int)((part ? part : row) - commands_table);

	return commands_table[i].harm && !allowed->of[i] &&
		       (commands_table[i].harm != HARM_BLOCKS || waits_for_ever(item, row->flags))
		   ? i
		   : -1;
}

const char *harm_reason(int command)
{
	return reasons[commands_table[command].harm];
}

/* One name of the list. False: no such name, or it can't be allowed. */
static bool allow(struct harm_allowed *allowed, const char *name, size_t length, char *error, size_t size)
{
	bool all = length == 3 && strncasecmp(name, "all", 3) == 0, known = false;

	for (int i = 0; i < COMMAND_ROWS; i++) {
		const struct command_row *row = &commands_table[i];
		/* The name of a command allows it with any arguments. */
		bool whole = row->bytes == length && strncasecmp(row->name, name, length) == 0;
		bool first = strcspn(row->name, " ") == length && strncasecmp(row->name, name, length) == 0;

		if (row->harm == HARM_PROTOCOL && whole && first) {
			snprintf(
			    error, size,
			    "--replay-allow: %s cannot be allowed: it changes the replies on its connection",
			    row->name);
			return false;
		}
		if ((all || whole || first) && row->harm && row->harm != HARM_PROTOCOL)
			known = allowed->of[i] = true;
	}
	if (!known)
		snprintf(error, size,
			 "--replay-allow: expected all or a list of commands that are omitted by default, "
			 "such as flushall,config, got \"%.*s\"",
			 (int)length, name);
	return known;
}

bool harm_allow(struct harm_allowed *allowed, const char *names, char *error, size_t size)
{
	for (;; names++) {
		size_t length = strcspn(names, ",");

		if (!allow(allowed, names, length, error, size))
			return false;
		names += length;
		if (!*names)
			return true;
	}
}

/* What depends on the keys of recorded commands: the slots, transactions, a sample, and the order by key. All
 * of it changes the records once, before the load, so that sending knows only lanes. */

const char *const replay_order_names[] = {"", "client", "key"};

int replay_find_slots(struct replay *r, replay_slot_of *slot_of, void *who)
{
	struct replay_reader reader;
	struct replay_item item;
	int rc = 0;

	r->slots = malloc(((size_t)r->count + 1) * sizeof(*r->slots));
	if (!r->slots)
		return -ENOMEM;
	replay_reader_init(&reader, NULL, NULL);
	for (uint32_t i = 0; i < r->count && rc == 0; i++) {
		/* A record is a command as in an append-only file. */
		reader.at = r->records[i].bytes;
		reader.end = reader.at + r->records[i].length;
		r->slots[i] = NO_SLOT;
		if (replay_aof_next(&reader, &item) == 1)
			rc = slot_of(who, item.words, item.word_count, &r->slots[i]);
		else
			rc = -ENOMEM;
	}
	replay_reader_free(&reader);
	return rc;
}

/* ---- transactions ---- */

/* A client's transaction, from WATCH or MULTI on. */
struct transaction {
	uint32_t first, last; /* records, chained by `next`; REPLAY_END: none is open */
	uint16_t slot;
	bool queueing; /* after MULTI */
};

struct finding {
	struct replay *r;
	struct transaction *of; /* by client */
	uint32_t *order;	/* the records in their new order; NULL: it does not change */
	uint32_t count;		/* in `order` */
};

/* The record's part, given what its client did before. */
static enum replay_part part_of(const struct transaction *t, const struct replay_record *record)
{
	enum replay_part part = record->part;

	if (t->queueing)
		return part == REPLAY_EXEC ? REPLAY_EXEC : REPLAY_QUEUED;
	/* Without a transaction they change nothing. */
	if (part == REPLAY_EXEC || (part == REPLAY_UNWATCH && t->first == REPLAY_END))
		return REPLAY_PLAIN;
	return part;
}

static void add_part(struct finding *f, struct transaction *t, uint32_t i)
{
	struct replay *r = f->r;

	if (t->first == REPLAY_END)
		*t = (struct transaction){.first = i, .slot = NO_SLOT};
	else
		r->records[t->last].next = i;
	t->last = i;
	t->queueing |= r->records[i].part == REPLAY_MULTI;
	if (r->slots && t->slot == NO_SLOT)
		t->slot = r->slots[i];
}

/* A transaction has ended with its last record. */
static void end_transaction(struct finding *f, struct transaction *t)
{
	struct replay *r = f->r;
	uint64_t due_ns = r->records[t->last].due_ns;

	for (uint32_t i = t->first; i != REPLAY_END; i = r->records[i].next) {
		if (r->slots)
			r->slots[i] = t->slot;
		if (!f->order)
			continue;
		r->records[i].due_ns = due_ns;
		f->order[f->count++] = i;
	}
	*t = (struct transaction){.first = REPLAY_END};
}

static void find_all(struct finding *f)
{
	struct replay *r = f->r;

	for (uint32_t i = 0; i < r->count; i++) {
		struct replay_record *record = &r->records[i];
		struct transaction *t = &f->of[record->lane];

		record->part = part_of(t, record);
		if (record->part != REPLAY_PLAIN)
			add_part(f, t, i);
		else if (f->order)
			f->order[f->count++] = i;
		if (record->part == REPLAY_EXEC || record->part == REPLAY_UNWATCH)
			end_transaction(f, t);
	}
}

/* Puts the records in their new order. -ENOMEM. */
static int reorder(struct finding *f)
{
	struct replay *r = f->r;
	struct replay_record *records = malloc(((size_t)f->count + 1) * sizeof(*records));
	uint16_t *slots = r->slots ? malloc(((size_t)f->count + 1) * sizeof(*slots)) : NULL;

	if (!records || (r->slots && !slots)) {
		free(records);
		free(slots);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < f->count; i++) {
		records[i] = r->records[f->order[i]];
		if (slots)
			slots[i] = r->slots[f->order[i]];
	}
	free(r->records);
	free(r->slots);
	r->unfinished = r->count - f->count;
	r->records = records;
	r->slots = slots;
	r->count = f->count;
	return 0;
}

int replay_find_transactions(struct replay *r, bool together)
{
	struct finding f = {.r = r, .of = malloc((r->clients + 1u) * sizeof(*f.of))};
	int rc = f.of ? 0 : -ENOMEM;

	if (together)
		f.order = malloc(((size_t)r->count + 1) * sizeof(*f.order));
	if (together && !f.order)
		rc = -ENOMEM;
	if (rc == 0) {
		for (uint32_t i = 0; i < r->clients; i++)
			f.of[i] = (struct transaction){.first = REPLAY_END};
		find_all(&f);
		if (!together)
			for (uint32_t i = 0; i < r->clients; i++)
				end_transaction(&f, &f.of[i]);
		else
			rc = reorder(&f);
	}
	free(f.order);
	free(f.of);
	return rc;
}

/* ---- a sample, and the order ---- */

/* What the record is chosen by: its slot, or a number of its client that is not a slot. */
static uint32_t group_of(const struct replay *r, uint32_t i)
{
	return r->slots[i] == NO_SLOT ? REPLAY_SLOTS + r->records[i].lane : r->slots[i];
}

void replay_sample(struct replay *r, double share, uint64_t seed)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		struct random_stream random = random_begin(seed, group_of(r, i), 5);
		bool keeps = (double)(random_next(&random) >> 11) < share * (double)(1ull << 53);

		if (!keeps && !(r->records[i].selects && r->records[i].part == REPLAY_PLAIN))
			continue;
		r->records[kept] = r->records[i];
		r->slots[kept++] = r->slots[i];
	}
	r->outside_sample = r->count - kept;
	r->count = kept;
	replay_set_span(r);
}

void replay_order_by_key(struct replay *r, uint32_t connections)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct replay_record *record = &r->records[i];

		/* Neighbouring slots, because they usually have one server: if it fails, other connections
		 * have nothing to wait for. */
		record->lane = r->slots[i] == NO_SLOT
				   ? record->lane % connections
				   : (uint32_t)((uint64_t)r->slots[i] * connections / REPLAY_SLOTS);
	}
	r->by_key = true;
}
