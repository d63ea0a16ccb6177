/* SPDX-License-Identifier: MIT */
/* Writes CPU samples, and each distinct stack once. The unwinding helper resolves stacks asynchronously
 * (samples.h). A sample's record is written when its stack is resolved or cannot be resolved. */
#include "loader/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "loader/attach.h"
#include "recording/json_block.h"

enum {
	STACKS_MAX = 20000, /* limit of distinct stacks; a service has hundreds */
	STACKS_BYTES_MAX = 16 << 20,
};

struct stack {
	UT_hash_handle hh;
	uint32_t id;
	char text[];
};

struct samples {
	struct ft_writer *writer;
	const struct threads *threads;
	struct unwind_queue *unwind_queue;
	struct stack *stacks; /* hash table of those already written, by text */
	uint32_t stack_count;
	size_t stack_bytes;
	uint64_t samples;
};

static void describe(struct stack_text *t, const struct unwind_queue_result *r)
{
	struct stack_line line;
	const char *frames = r->frames;
	stack_text_begin(t, r->program);
	while (stack_text_line(&frames, &line)) {
		char function[STACK_NAME_BYTES + 1], module[STACK_NAME_BYTES + 1];
		snprintf(function, sizeof function, "%.*s", (int)line.function_length, line.function);
		snprintf(module, sizeof module, "%.*s", (int)line.module_length,
			 line.module ? line.module : "");
		if (!stack_text_frame(t, function, module))
			break;
	}
	for (size_t i = 0; i < r->kernel_count; i++) {
		char name[160];
		symbol_name(r->kernel[i], name, sizeof name);
		name[strcspn(name, "+")] = 0; /* with offsets, the number of stacks would have no limit */
		if (!stack_text_kernel(t, name))
			break;
	}
}

static void write_stack(struct samples *s, const struct stack *stack)
{
	json_t *frames = json_array(), *kernel = json_array();
	const char *text = stack->text;
	struct stack_line line = {.function = ""};
	stack_text_line(&text, &line);
	json_t *program = json_text(line.function, line.function_length);
	while (stack_text_line(&text, &line)) {
		json_t *function = json_text(line.function, line.function_length);
		if (line.module)
			json_array_append_new(frames, json_pack("[o, o]", function,
								json_text(line.module, line.module_length)));
		else
			json_array_append_new(kernel, function);
	}
	write_json_definition(s->writer, FT_BLOCK_STACK,
			      json_pack("{s:I, s:o, s:o, s:o}", "id", (json_int_t)stack->id, "program",
					program, "frames", frames, "kernel", kernel));
}

/* Returns the id of a stack, which is written if it is new. 0: too many stacks or no memory. */
static uint32_t stack_id(struct samples *s, const struct stack_text *t)
{
	const size_t bytes = sizeof(struct stack) + t->length + 1;
	struct stack *stack;
	HASH_FIND(hh, s->stacks, t->bytes, t->length, stack);
	if (stack)
		return stack->id;
	if (s->stack_count == STACKS_MAX || s->stack_bytes + bytes > STACKS_BYTES_MAX)
		return 0;
	stack = malloc(bytes);
	if (!stack)
		return 0;
	memcpy(stack->text, t->bytes, t->length + 1);
	stack->id = ++s->stack_count;
	HASH_ADD_KEYPTR(hh, s->stacks, stack->text, t->length, stack);
	if (!hash_added(stack)) {
		free(stack);
		return 0;
	}
	s->stack_bytes += bytes;
	write_stack(s, stack);
	return stack->id;
}

/* An unwind_queue_handler. */
static void on_result(void *context, const struct unwind_queue_result *r)
{
	struct samples *s = context;
	struct ft_cpu_sample record = r->record;
	if (r->frames) {
		struct stack_text text;
		describe(&text, r);
		record.stack = stack_id(s, &text);
	}
	record.flags |= (r->callers ? FT_CPU_SAMPLE_CALLERS : 0) | (r->cut ? FT_CPU_SAMPLE_CUT : 0);
	ft_writer_record(s->writer, FT_BLOCK_CPU_SAMPLE, &record);
	s->samples++;
}

struct samples *samples_open(struct ft_writer *writer, const struct threads *threads,
			     struct unwind_queue *unwind_queue)
{
	struct samples *s = calloc(1, sizeof *s);
	if (s) {
		s->writer = writer;
		s->threads = threads;
		s->unwind_queue = unwind_queue;
		unwind_queue_handle(unwind_queue, on_result, s);
	}
	return s;
}

void samples_close(struct samples *s)
{
	if (!s)
		return;
	hash_free_all(struct stack, s->stacks);
	free(s);
}

void samples_prepare(struct samples *s, pid_t pid)
{
	if (s)
		unwind_queue_prepare(s->unwind_queue, pid);
}

void samples_add(struct samples *s, const void *event, size_t bytes)
{
	if (!s)
		return;
	const struct ft_event_sample *e = event;
	const struct ft_event_sample_stack *whole =
	    e->type == FT_EVENT_SAMPLE_STACK && bytes >= sizeof *whole ? event : NULL;
	struct ft_cpu_sample record = {.t_ns = e->t_ns,
				       .tid = e->tid,
				       .cpu = e->cpu,
				       .owner = e->owner,
				       .flags = e->in_kernel ? FT_CPU_SAMPLE_KERNEL : 0,
				       .syscall = (uint16_t)(e->syscall + 1),
				       .file = e->file,
				       .period = e->period};
	unwind_queue_add(s->unwind_queue, &record, e, whole, threads_parent(s->threads, (pid_t)e->tgid));
}

void samples_thread_ended(struct samples *s, const struct ft_event_thread *e)
{
	if (s && e->tid == e->tgid)
		unwind_queue_forget(s->unwind_queue, (pid_t)e->tgid);
}

void samples_tick(struct samples *s)
{
	if (s)
		unwind_queue_tick(s->unwind_queue);
}

bool samples_wait(const struct samples *s)
{
	return s && unwind_queue_waits(s->unwind_queue);
}

void samples_settle(struct samples *s)
{
	if (s)
		unwind_queue_settle(s->unwind_queue);
}

void samples_begin_segment(struct samples *s)
{
	if (!s)
		return;
	hash_free_all(struct stack, s->stacks);
	s->stack_count = 0;
	s->stack_bytes = 0;
	s->samples = 0;
}

struct samples_figures samples_so_far(const struct samples *s)
{
	struct samples_figures f = {0};
	if (s) {
		f.samples = s->samples;
		f.unwinding = unwind_queue_so_far(s->unwind_queue);
	}
	return f;
}

/* Names come from files that a target maps. They are untrusted: neither length nor content is assumed. */

/* Kept bytes of a name. */
static size_t kept_bytes(const char *name)
{
	return strnlen(name, STACK_NAME_BYTES);
}

/* The callers have checked that there is space. */
static void append(struct stack_text *t, const char *name, char end)
{
	size_t length = kept_bytes(name);
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
	if (!fits(t, kept_bytes(function) + kept_bytes(module) + 2, STACK_TEXT_BYTES / 2))
		return false;
	append(t, function, '\t');
	append(t, module, '\n');
	return true;
}

bool stack_text_kernel(struct stack_text *t, const char *function)
{
	if (!fits(t, kept_bytes(function) + 1, STACK_TEXT_BYTES))
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
