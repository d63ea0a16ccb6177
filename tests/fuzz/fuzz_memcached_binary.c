/* SPDX-License-Identifier: MIT */
/* The scanner of memcached's binary replies under libFuzzer; see check.h for what is asked of it. */
#include <stdio.h>

#include "loadgen/protocol/memcached_binary.h"
#include "tests/fuzz/check.h"

static int scan(void *state, const char **at, const char *end)
{
	return memcached_binary_scan(state, at, end);
}

static size_t said(const void *state, char *said)
{
	const struct memcached_binary_scanner *s = state;

	return (size_t)snprintf(said, FUZZ_SAID, "%u %u %s %x %x", s->kind, s->opcode,
				memcached_binary_status_name(s->status), s->status, s->opaque);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct memcached_binary_scanner), scan, said};

	fuzz_check(&scanner, data, size);
	return 0;
}
