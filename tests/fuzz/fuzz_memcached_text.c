/* SPDX-License-Identifier: MIT */
/* The scanner of memcached's text replies under libFuzzer. See check.h for the checked property. */
#include <inttypes.h>
#include <stdio.h>

#include "loadgen/protocol.h"
#include "tests/fuzz/check.h"

static int scan(void *state, const char **at, const char *end)
{
	return memcached_text_scan(state, at, end);
}

static size_t summarize(const void *state, char *summary)
{
	const struct memcached_text_scanner *s = state;
	int length;

	switch (s->kind) {
	case MEMCACHED_TEXT_HIT:
		length = snprintf(summary, FUZZ_SUMMARY, "HIT %" PRIu32, s->values);
		break;
	case MEMCACHED_TEXT_NUMBER:
		length = snprintf(summary, FUZZ_SUMMARY, "NUMBER %" PRIu64, s->number);
		break;
	case MEMCACHED_TEXT_ERROR:
		length = snprintf(summary, FUZZ_SUMMARY, "%s %s %d", s->line.word, s->line.explanation,
				  memcached_line_out_of_memory(&s->line));
		break;
	default:
		length = snprintf(summary, FUZZ_SUMMARY, "%u", s->kind);
	}
	return (size_t)length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct memcached_text_scanner), scan, summarize};

	fuzz_check(&scanner, data, size);
	return 0;
}
