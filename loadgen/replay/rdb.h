/* SPDX-License-Identifier: MIT */
/* Finds the end of an RDB file when something follows it: an append-only file may begin with one (the
 * preamble), followed by the commands. An RDB does not contain its length, so it must be walked entry by
 * entry, without decoding it. */
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

/* The bytes of the RDB at `at`, checksum included. 0, and a sentence that continues "the RDB preamble ...":
 * it is truncated, damaged, or unknown to this version. `facts` are filled up to there. */
size_t rdb_length(const char *at, const char *end, struct rdb_facts *facts, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
