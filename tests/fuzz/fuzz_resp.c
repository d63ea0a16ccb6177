/* SPDX-License-Identifier: MIT */
/* The scanner of Redis replies under libFuzzer; see check.h for what is asked of it. */
#include <string.h>

#include "loadgen/protocol/resp.h"
#include "tests/fuzz/check.h"

static int scan(void *state, const char **at, const char *end)
{
	return resp_scan(state, at, end);
}

static size_t said(const void *state, char *said)
{
	const struct resp_scanner *s = state;
	size_t word = s->kind == '-' ? strnlen(s->word, sizeof(s->word)) : 0;

	said[0] = (char)s->kind;
	memcpy(said + 1, s->word, word);
	return 1 + word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_scanner scanner = {sizeof(struct resp_scanner), scan, said};

	fuzz_check(&scanner, data, size);
	return 0;
}
