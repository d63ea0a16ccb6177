/* SPDX-License-Identifier: MIT */
/* YCSB's names of records and lengths of scans: the part that single commands need. Its mixes and its choice
 * of keys are in loadgen/workload/ycsb.h. */
#ifndef FORKTAIL_LOADGEN_YCSB_NAMES_H
#define FORKTAIL_LOADGEN_YCSB_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "random.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { YCSB_SCAN_MAX = 100, YCSB_NAME_BYTES = 24 };

/* 1 to YCSB_SCAN_MAX records. */
static inline uint32_t ycsb_draw_scan(struct random_stream *r)
{
	return 1 + (uint32_t)random_below(r, YCSB_SCAN_MAX);
}

/* FNV-1a64 of n's eight bytes, lowest byte first; then without its sign, as Java's Math.abs. */
uint64_t ycsb_hash(uint64_t n);

/* Writes record n's key, "user" and its hash in decimal, with a NUL. Returns its length. */
size_t ycsb_key_name(uint64_t n, char name[YCSB_NAME_BYTES]);

/* Java's String.hashCode of an ASCII name: the score of a record in the index that scans use. */
int32_t ycsb_name_hash(const char *name, size_t length);

#ifdef __cplusplus
}
#endif
#endif
