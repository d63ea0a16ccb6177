/* SPDX-License-Identifier: MIT */
/* A stack as text: the program, then a line for each frame, "function\tmodule", then one for each function of
 * the kernel. It is both what tells stacks apart and what is written. */
#ifndef FORKTAIL_LOADER_STACK_TEXT_H
#define FORKTAIL_LOADER_STACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	STACK_TEXT_BYTES = 8192,
	STACK_NAME_BYTES = 256, /* of a name; C++ templates have longer ones, and so has who means harm */
};

struct stack_text {
	char bytes[STACK_TEXT_BYTES]; /* ends with a 0 */
	size_t length;		      /* without it */
};

/* Begins with a program's name. Names may be any bytes: they are cut, and what would end a line is a '?'. */
void stack_text_begin(struct stack_text *t, const char *program);
/* Adds a line each, whole or not at all; false when there is no room. The kernel's have half of it to
 * themselves. */
bool stack_text_frame(struct stack_text *t, const char *function, const char *module);
bool stack_text_kernel(struct stack_text *t, const char *function);

/* Takes the next line of a text apart and moves *text behind it; false at its end. A line without a module
 * has a length of 0 for it and NULL. */
struct stack_line {
	const char *function, *module;
	size_t function_length, module_length;
};
bool stack_text_line(const char **text, struct stack_line *line);

#ifdef __cplusplus
}
#endif

#endif
