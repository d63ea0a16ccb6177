/* SPDX-License-Identifier: MIT */
/* The reader of append-only files under libFuzzer; see check_replay.h for the checked property. Also the walk
 * over an RDB: it ends at the same byte whatever follows, and nowhere if a byte is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/replay.h"
#include "tests/fuzz/check_replay.h"

/* In memory of exactly its size. */
static size_t walk(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1), why[160] = "";
	struct rdb_facts facts;
	size_t length;

	if (!copy)
		exit(3);
	memcpy(copy, data, size);
	length = rdb_length(copy, copy + size, &facts, why, sizeof(why));
	free(copy);
	if (length > size || (length == 0 && !why[0])) {
		fprintf(stderr, "an RDB of %zu bytes in %zu, \"%s\"\n", length, size, why);
		abort();
	}
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length = walk(data, size);

	if (length == 0) {
		fuzz_check_reader(replay_aof_next, data, size);
		return 0;
	}
	if (walk(data, length) != length || walk(data, length - 1) != 0 || walk(data, length / 2) != 0) {
		fprintf(stderr, "the RDB does not end at byte %zu for every input\n", length);
		abort();
	}
	fuzz_check_reader(replay_aof_next, data + length, size - length);
	return 0;
}
