/* SPDX-License-Identifier: MIT */
/* Stacks as text under libFuzzer. An input is an answer of the unwinding helper, and each of its lines is
 * also a name from a target's files. The result stays within its buffer, and is parsed again as lines of the
 * same kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/samples.h"
#include "tests/fuzz/check.h"

static void check(const struct stack_text *t, size_t frames, size_t kernel)
{
	const char *at = t->bytes;
	struct stack_line line;
	size_t lines = 0;
	if (t->length >= STACK_TEXT_BYTES || strlen(t->bytes) != t->length)
		abort();
	while (stack_text_line(&at, &line))
		if (!!line.module != (lines++ > 0 && lines <= frames + 1))
			abort();
	if (lines != 1 + frames + kernel)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack_text *t = malloc(sizeof *t);
	char *answer = malloc(size + 1), *name = malloc(size + 1);
	size_t frames = 0, kernel = 0;
	if (t && answer && name) {
		memcpy(answer, data, size);
		answer[size] = 0;
		const char *at = answer;
		struct stack_line line;
		stack_text_begin(t, answer);
		while (stack_text_line(&at, &line)) {
			snprintf(name, size + 1, "%.*s", (int)line.function_length, line.function);
			if (!kernel && line.module)
				frames += stack_text_frame(t, name, line.module);
			else
				kernel += stack_text_kernel(t, name);
		}
		check(t, frames, kernel);
	}
	free(t);
	free(answer);
	free(name);
	return 0;
}
