/* SPDX-License-Identifier: MIT */
/* The scanner of replies to memcached's meta commands under libFuzzer. See check.h for the checked property.
 */
#include <inttypes.h>
#include <stdio.h>

#include "loadgen/protocol.h"
#include "tests/fuzz/check.h"

static int scan(void *state, const char **at, const char *end)
{
	return memcached_meta_scan(state, at, end);
}

static size_t summarize(const void *state, char *summary)
{
	const struct memcached_meta_scanner *s = state;
	int length;

	if (s->kind == MEMCACHED_META_ERROR)
		length = snprintf(summary, FUZZ_SUMMARY, "%s %s %d", s->line.word, s->line.explanation,
				  memcached_line_out_of_memory(&s->line));
	else
		length = snprintf(summary, FUZZ_SUMMARY, "%u %d %" PRIu64, s->kind, s->has_opaque, s->opaque);
	return (size_t)length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct memcached_meta_scanner), scan, summarize};

	fuzz_check(&scanner, data, size);
	return 0;
}
