/* SPDX-License-Identifier: MIT */
/* The scanner of memcached's binary replies under libFuzzer. See check.h for the checked property. */
#include <stdio.h>

#include "loadgen/protocol.h"
#include "tests/fuzz/check.h"

static int scan(void *state, const char **at, const char *end)
{
	return memcached_binary_scan(state, at, end);
}

static size_t summarize(const void *state, char *summary)
{
	const struct memcached_binary_scanner *s = state;

	return (size_t)snprintf(summary, FUZZ_SUMMARY, "%u %u %s %x %x", s->kind, s->opcode,
				memcached_binary_status_name(s->status), s->status, s->opaque);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct memcached_binary_scanner), scan, summarize};

	fuzz_check(&scanner, data, size);
	return 0;
}
