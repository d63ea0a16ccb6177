/* SPDX-License-Identifier: MIT */
/* Samples: the budget for unwinding, and each stack once.
 *
 * Unwinding is the dearest thing the recorder does, and it does most of it while the server is at its
 * busiest. So it gets a bounded share of a CPU; what comes beyond is kept as the innermost function only, and
 * counted. */
#include "samples.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stack_text.h"
#include "symbols.h"
#include "unwind.h"
#include "json/json_block.h"

enum {
	UNWIND_NS_PER_TICK = 10000000, /* a fifth of a CPU */
	STACKS_MAX = 20000,	       /* distinct ones; a service has hundreds */
};

struct stack {
	uint32_t id;
	char text[];
};

struct samples {
	struct ft_writer *writer;
	const struct threads *threads;
	struct unwinder *unwinder;
	void *stacks; /* tsearch tree of those written */
	uint32_t stack_count;
	uint64_t spent_ns; /* of CPU time on unwinding in this tick */
	struct samples_figures figures;
};

/* CPU time rather than wall time: what unwinding waits for the server costs nobody. */
static uint64_t own_cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void describe(struct stack_text *t, const struct unwound *u, const struct ft_event_sample_stack *e)
{
	stack_text_begin(t, u->program);
	for (size_t i = 0; i < u->count; i++)
		if (!stack_text_frame(t, u->frames[i].function, u->frames[i].module))
			break;
	size_t kernel = e && e->kernel_bytes > 0 ? (size_t)e->kernel_bytes / sizeof *e->kernel : 0;
	for (size_t i = 0; i < kernel && i < FT_STACK_FRAMES; i++) {
		char name[160];
		symbol_name(e->kernel[i], name, sizeof name);
		name[strcspn(name, "+")] =
		    0; /* with the place in the function there would be no end of stacks */
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
	write_json_block(s->writer, FT_BLOCK_STACK,
			 json_pack("{s:I, s:o, s:o, s:o}", "id", (json_int_t)stack->id, "program", program,
				   "frames", frames, "kernel", kernel));
}

static int compare_stacks(const void *a, const void *b)
{
	return strcmp(((const struct stack *)a)->text, ((const struct stack *)b)->text);
}

/* The id of a stack, written if it is new; 0 when there are too many or memory is out. */
static uint32_t stack_id(struct samples *s, const struct stack_text *t)
{
	struct stack *wanted = malloc(sizeof *wanted + t->length + 1);
	if (!wanted)
		return 0;
	memcpy(wanted->text, t->bytes, t->length + 1);
	struct stack **found = tfind(wanted, &s->stacks, compare_stacks);
	if (found || s->stack_count == STACKS_MAX) {
		free(wanted);
		return found ? (*found)->id : 0;
	}
	wanted->id = ++s->stack_count;
	if (!tsearch(wanted, &s->stacks, compare_stacks)) {
		free(wanted);
		return 0;
	}
	write_stack(s, wanted);
	return wanted->id;
}

struct samples *samples_open(struct ft_writer *writer, const struct threads *threads)
{
	struct samples *s = calloc(1, sizeof *s);
	if (s && !(s->unwinder = unwinder_open())) {
		free(s);
		return NULL;
	}
	if (s) {
		s->writer = writer;
		s->threads = threads;
	}
	return s;
}

void samples_close(struct samples *s)
{
	if (!s)
		return;
	unwinder_close(s->unwinder);
	tdestroy(s->stacks, free);
	free(s);
}

void samples_prepare(struct samples *s, pid_t pid)
{
	if (s)
		unwinder_prepare(s->unwinder, pid);
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
				       .file = e->file};
	if (whole && s->spent_ns >= UNWIND_NS_PER_TICK) {
		whole = NULL;
		s->figures.not_unwound++;
	}
	pid_t parent = threads_parent(s->threads, (pid_t)e->tgid);
	struct unwound unwound;
	if (whole) {
		uint64_t start_ns = own_cpu_ns();
		unwinder_unwind(s->unwinder, whole, parent, &unwound);
		uint64_t took_ns = own_cpu_ns() - start_ns;
		s->spent_ns += took_ns;
		s->figures.unwind_ns += took_ns;
		s->figures.unwound++;
		record.flags |= FT_CPU_SAMPLE_CALLERS | (unwound.cut ? FT_CPU_SAMPLE_CUT : 0);
	} else {
		unwinder_locate(s->unwinder, e, parent, &unwound);
	}
	struct stack_text text;
	describe(&text, &unwound, whole);
	record.stack = stack_id(s, &text);
	ft_writer_record(s->writer, FT_BLOCK_CPU_SAMPLE, &record);
	s->figures.samples++;
}

void samples_thread_ended(struct samples *s, const struct ft_event_thread *e)
{
	if (s && e->tid == e->tgid)
		unwinder_forget(s->unwinder, (pid_t)e->tgid);
}

void samples_tick(struct samples *s)
{
	if (s)
		s->spent_ns = 0;
}

struct samples_figures samples_so_far(const struct samples *s)
{
	return s ? s->figures : (struct samples_figures){0};
}
