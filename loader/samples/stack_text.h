/* SPDX-License-Identifier: MIT */
/* A stack as text: the program, then a line per frame, "function\tmodule", then a line per kernel function.
 * This text identifies a stack and is also what is written. */
#ifndef FORKTAIL_LOADER_STACK_TEXT_H
#define FORKTAIL_LOADER_STACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	STACK_TEXT_BYTES = 8192,
	STACK_NAME_BYTES = 256, /* of a name; C++ templates and malicious files have longer ones */
};

struct stack_text {
	char bytes[STACK_TEXT_BYTES]; /* terminated by 0 */
	size_t length;		      /* without the terminator */
};

/* Begins with a program's name. Names may contain any bytes: they are truncated, and a line break becomes
 * '?'. */
void stack_text_begin(struct stack_text *t, const char *program);
/* Adds a line, completely or not at all. False: no space. Half of the space is reserved for kernel
 * functions. */
bool stack_text_frame(struct stack_text *t, const char *function, const char *module);
bool stack_text_kernel(struct stack_text *t, const char *function);

/* Splits the next line of a text and moves *text after it. False at the end. A line without a module returns
 * NULL and length 0 for it. */
struct stack_line {
	const char *function, *module;
	size_t function_length, module_length;
};
bool stack_text_line(const char **text, struct stack_line *line);

#ifdef __cplusplus
}
#endif

#endif
