/* SPDX-License-Identifier: MIT */
/* What depends on the keys of recorded commands: the slots, transactions, a sample, and the order by key. All
 * of it changes the records once, before the load, so that sending knows only lanes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/command/random.h"
#include "replay.h"
#include "replay_times.h"

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
