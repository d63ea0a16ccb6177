/* SPDX-License-Identifier: MIT */
/* The scanner of Redis replies under libFuzzer. See check.h for the checked property. */
#include <string.h>

#include "loadgen/protocol.h"
#include "tests/fuzz/check.h"

static int scan(void *state, const char **at, const char *end)
{
	return resp_scan(state, at, end);
}

static size_t summarize(const void *state, char *summary)
{
	const struct resp_scanner *s = state;
	size_t word = s->kind == '-' ? strnlen(s->word, sizeof(s->word)) : 0;

	summary[0] = (char)s->kind;
	memcpy(summary + 1, s->word, word);
	return 1 + word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct resp_scanner), scan, summarize};

	fuzz_check(&scanner, data, size);
	return 0;
}
