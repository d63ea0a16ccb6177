/* SPDX-License-Identifier: MIT */
/* Where an RDB file ends, when something follows it: an append-only file may begin with one (the preamble),
 * and the commands come behind. An RDB says nowhere how long it is, so it has to be walked, entry by entry;
 * nothing of it is decoded. */
#ifndef FORKTAIL_LOADGEN_RDB_H
#define FORKTAIL_LOADGEN_RDB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rdb_facts {
	uint32_t version;
	uint64_t keys, functions; /* walked over */
};

/* The bytes of the RDB at `at`, checksum included; 0, and a sentence that goes on from "the RDB preamble
 * ...": it is cut, damaged, or has something that this version doesn't know. `facts` are filled up to there.
 */
size_t rdb_length(const char *at, const char *end, struct rdb_facts *facts, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
