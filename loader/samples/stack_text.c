/* SPDX-License-Identifier: MIT */
/* Names come from files that a target maps. They are untrusted: neither length nor content is assumed. */
#include "loader/samples/stack_text.h"

#include <string.h>

/* Kept bytes of a name. */
static size_t kept(const char *name)
{
	return strnlen(name, STACK_NAME_BYTES);
}

/* The callers have checked that there is space. */
static void append(struct stack_text *t, const char *name, char end)
{
	size_t length = kept(name);
	for (size_t i = 0; i < length; i++)
		t->bytes[t->length++] = name[i] == '\n' || name[i] == '\t' ? '?' : name[i];
	t->bytes[t->length++] = end;
	t->bytes[t->length] = 0;
}

/* Whether `bytes` and a terminating 0 fit in the first `room` bytes of the text. */
static bool fits(const struct stack_text *t, size_t bytes, size_t room)
{
	return t->length < room && bytes < room - t->length;
}

void stack_text_begin(struct stack_text *t, const char *program)
{
	t->length = 0;
	append(t, program, '\n');
}

bool stack_text_frame(struct stack_text *t, const char *function, const char *module)
{
	if (!fits(t, kept(function) + kept(module) + 2, STACK_TEXT_BYTES / 2))
		return false;
	append(t, function, '\t');
	append(t, module, '\n');
	return true;
}

bool stack_text_kernel(struct stack_text *t, const char *function)
{
	if (!fits(t, kept(function) + 1, STACK_TEXT_BYTES))
		return false;
	append(t, function, '\n');
	return true;
}

bool stack_text_line(const char **text, struct stack_line *line)
{
	const char *at = *text;
	size_t length = strcspn(at, "\n"), function = strcspn(at, "\t\n");
	if (!*at)
		return false;
	*line = (struct stack_line){.function = at, .function_length = function};
	if (function < length) {
		line->module = at + function + 1;
		line->module_length = length - function - 1;
	}
	*text = at + length + (at[length] == '\n');
	return true;
}
