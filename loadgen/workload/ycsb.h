/* SPDX-License-Identifier: MIT */
/* YCSB's core workloads A to F: their mixes, their keys, and the base of records that inserts grow. Figures
 * are comparable with YCSB's only if the same keys are requested with the same frequencies, so all of this
 * follows its source exactly, including approximate formulas. The random generator differs, so runs agree in
 * distribution, not draw by draw. */
#ifndef FORKTAIL_LOADGEN_YCSB_H
#define FORKTAIL_LOADGEN_YCSB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/command/ycsb_names.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { YCSB_FIELDS = 10, YCSB_FIELD_BYTES = 100 };

enum ycsb_operation {
	YCSB_READ,		/* all fields of a record */
	YCSB_UPDATE,		/* one field */
	YCSB_INSERT,		/* a record of all fields */
	YCSB_SCAN,		/* up to YCSB_SCAN_MAX records */
	YCSB_READ_MODIFY_WRITE, /* a read, then an update of the same record, measured together */
	YCSB_OPERATIONS,
};

enum ycsb_choice { YCSB_ZIPFIAN, YCSB_LATEST };

struct ycsb_workload {
	char letter;
	double shares[YCSB_OPERATIONS]; /* their sum is 1 */
	enum ycsb_choice choice;	/* for the keys of everything except inserts */
};

/* 'A' to 'F' or 'a' to 'f'; NULL for any other. */
const struct ycsb_workload *ycsb_find(char letter);

enum ycsb_operation ycsb_draw_operation(const struct ycsb_workload *w, struct random_stream *r);

static inline uint32_t ycsb_draw_field(struct random_stream *r)
{
	return (uint32_t)random_below(r, YCSB_FIELDS);
}

/* Zipf by the closed form of Gray et al. ("Quickly generating billion-record synthetic databases", SIGMOD
 * 1994): exact for the two most popular items, an approximation for the others. */
struct ycsb_zipfian {
	uint64_t items; /* at the start */
	uint64_t zeta_items;
	double zeta; /* sum of 1/i^theta for i = 1 .. zeta_items */
	double eta;
};

/* Extends zeta to `items`: some 20 ns per item. */
void ycsb_zipfian_init(struct ycsb_zipfian *z, uint64_t items);

/* 0 .. items-1 (and, as in YCSB, rarely `items` itself). zeta is extended when items have grown and stays
 * otherwise. */
uint64_t ycsb_zipfian_draw(struct ycsb_zipfian *z, struct random_stream *r, uint64_t items);

/* A thread's choice of existing records. Initialize one, then copy it to each thread. */
struct ycsb_keys {
	struct ycsb_zipfian zipfian;
	uint64_t hashed_items; /* zipfian choice: hashes are taken modulo this; 0 for latest */
};

/* `records` exist before the run (at least 1), which does `operations` of all kinds. From these YCSB predicts
 * the number of inserts and distributes popularity over future keys, too. */
void ycsb_keys_init(struct ycsb_keys *k, const struct ycsb_workload *w, uint64_t records,
		    uint64_t operations);

/* A record among 0 .. count-1; `count` is key_base_count(), at least 1. */
uint64_t ycsb_draw_key(struct ycsb_keys *k, struct random_stream *r, uint64_t count);

/* The base of records while threads insert: numbers are assigned in order and acknowledged in any order.
 * Readable records are those below the first number that isn't acknowledged. No thread ever waits. Each
 * number has a bit in a ring as large as YCSB's. A bit is flipped, not set, so it need not be cleared before
 * the ring's next lap: the value that means "acknowledged" alternates from lap to lap. */
#define KEY_BASE_WINDOW (1u << 20)
#define KEY_BASE_FULL UINT64_MAX

struct key_base {
	uint64_t start;
	uint64_t next, count; /* minus start; atomic */
	uint64_t turned[KEY_BASE_WINDOW / 64];
};

/* `start` records exist. */
void key_base_init(struct key_base *b, uint64_t start);

/* The next record to insert; KEY_BASE_FULL while KEY_BASE_WINDOW of them aren't acknowledged. */
uint64_t key_base_take(struct key_base *b);

/* Call it once for each number taken, as YCSB does whatever the result of the insert: a number that is never
 * acknowledged prevents reading of all later records. */
void key_base_ack(struct key_base *b, uint64_t n);

static inline uint64_t key_base_count(const struct key_base *b)
{
	return b->start + __atomic_load_n(&b->count, __ATOMIC_ACQUIRE);
}

#ifdef __cplusplus
}
#endif
#endif
