/* SPDX-License-Identifier: MIT */
/* Samples wait in a ring, identified by increasing serial numbers. An answer to a sample that was given up is
 * recognized by its number and ignored. Each request is charged to the budget at the recent price of an
 * answer and corrected when the answer arrives. Otherwise all samples of a tick would be sent before the
 * first price is known. */
#include "loader/samples/unwind_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/samples/address_spaces.h"
#include "loader/samples/stack_text.h"
#include "loader/samples/unwind_helper.h"
#include "loader/samples/unwind_messages.h"
#include "loader/system/cpu_time.h"
#include "loader/system/packets.h"
#include "recording/recording.h"

enum {
	HELPERS = 3,
	WAITING = 4096, /* samples without an answer; a power of two */
	QUEUE_BYTES = 8 << 20,
	/* CPU time per tick of the recorder: a fifth of a CPU. Samples with callers use this budget, samples
	 * without callers the same amount again. */
	NS_PER_TICK = 10000000,
	FIRST_ESTIMATE_NS = 50000,
	ANSWER_NS = 1000000000, /* how long to wait for an answer */
	TAKES_AT_MOST_NS = 1000000000,
};
#define HUNG_NS 10000000000ull /* without any message */

struct waiting {
	uint64_t serial, since_ns, charged_ns;
	struct ft_cpu_sample record;
	bool callers;
	uint32_t kernel_count;
	uint64_t kernel[FT_STACK_FRAMES];
	char program[STACK_NAME_BYTES];
};

struct outgoing {
	struct outgoing *next;
	size_t bytes;
	int fd;
	char request[];
};

struct unwind_queue {
	unwind_queue_handler handler;
	void *context;
	struct unwind_helper helpers[HELPERS];
	size_t at_work; /* index; HELPERS: none is left */
	struct address_spaces *spaces;
	struct waiting *waiting; /* a ring */
	uint64_t first, next;	 /* serials of the oldest waiting sample and of the next one */
	uint64_t answered;	 /* the last one that was answered */
	uint64_t word_ns;	 /* when the helper last sent something, or had nothing to send */
	struct outgoing *queue, **queue_end;
	size_t queue_bytes;
	int64_t budget_ns;
	uint64_t estimate_ns[2]; /* CPU time of an answer, without and with callers */
	struct unwind_queue_figures figures;
};

static bool has_helper(const struct unwind_queue *u)
{
	return u->at_work < HELPERS && u->helpers[u->at_work].pid;
}

static struct unwind_helper *helper(struct unwind_queue *u)
{
	return &u->helpers[u->at_work];
}

static void drop_queue(struct unwind_queue *u)
{
	while (u->queue) {
		struct outgoing *o = u->queue;
		u->queue = o->next;
		if (o->fd >= 0)
			close(o->fd);
		free(o);
	}
	u->queue_end = &u->queue;
	u->queue_bytes = 0;
}

static void finish(struct unwind_queue *u, const struct waiting *w, const char *frames, bool cut)
{
	const struct unwind_queue_result result = {.record = w->record,
						   .program = w->program,
						   .frames = frames,
						   .callers = w->callers && frames,
						   .cut = cut,
						   .kernel_count = w->kernel_count,
						   .kernel = w->kernel};
	if (frames && w->callers)
		u->figures.unwound++;
	if (!frames)
		u->figures.not_unwound++;
	u->handler(u->context, &result);
}

/* Gives up all waiting samples up to a serial. */
static void give_up(struct unwind_queue *u, uint64_t serial)
{
	for (; u->first < u->next && u->first <= serial; u->first++)
		finish(u, &u->waiting[u->first % WAITING], NULL, false);
}

/* The helper has exited or does not answer: the next one starts without any state. */
static void replace_helper(struct unwind_queue *u)
{
	u->figures.helper_cpu_ns += cpu_time_ns(helper(u)->pid);
	u->figures.helpers_ended++;
	unwind_helper_end(helper(u));
	drop_queue(u);
	give_up(u, UINT64_MAX);
	address_spaces_forget_all(u->spaces);
	u->answered = u->next - 1;
	u->word_ns = ft_now_ns();
	u->at_work++;
	fprintf(stderr, "forktail record: the helper process that names samples exited%s\n",
		has_helper(u) ? "; starting another one"
			      : " too often; samples have no function names from now on");
}

/* Sends queued requests until the socket is full. */
static void send_queue(struct unwind_queue *u)
{
	while (u->queue) {
		struct outgoing *o = u->queue;
		int err = send_packet(helper(u)->requests, o->request, o->bytes, o->fd, MSG_DONTWAIT);
		if (err == -EAGAIN || err == -ENOBUFS || err == -ETOOMANYREFS)
			return;
		if (err) /* its exit is noticed when answers are read */
			return;
		u->queue = o->next;
		u->queue_end = u->queue ? u->queue_end : &u->queue;
		u->queue_bytes -= o->bytes;
		if (o->fd >= 0)
			close(o->fd);
		free(o);
	}
}

/* A request_sender. */
static void enqueue(void *context, const struct unwind_request *request, size_t bytes, int fd)
{
	struct unwind_queue *u = context;
	struct outgoing *o = has_helper(u) ? malloc(sizeof *o + bytes) : NULL;
	if (!o) {
		if (fd >= 0)
			close(fd);
		return;
	}
	*o = (struct outgoing){.next = NULL, .bytes = bytes, .fd = fd};
	memcpy(o->request, request, bytes);
	*u->queue_end = o;
	u->queue_end = &o->next;
	u->queue_bytes += bytes;
	send_queue(u);
}

struct unwind_queue *unwind_queue_open(void)
{
	struct unwind_queue *u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	u->queue_end = &u->queue;
	u->first = u->next = 1;
	u->budget_ns = NS_PER_TICK;
	u->estimate_ns[0] = u->estimate_ns[1] = FIRST_ESTIMATE_NS;
	u->spaces = address_spaces_open(enqueue, u);
	u->waiting = calloc(WAITING, sizeof *u->waiting);
	int err = u->spaces && u->waiting ? 0 : -ENOMEM;
	for (size_t i = 0; i < HELPERS; i++)
		u->helpers[i] = (struct unwind_helper){.pid = 0, .requests = -1, .questions = -1};
	for (size_t i = 0; i < HELPERS && !err; i++)
		err = unwind_helper_start(&u->helpers[i]);
	if (err) {
		unwind_queue_close(u);
		return NULL;
	}
	return u;
}

void unwind_queue_handle(struct unwind_queue *u, unwind_queue_handler handler, void *context)
{
	u->handler = handler;
	u->context = context;
}

void unwind_queue_close(struct unwind_queue *u)
{
	if (!u)
		return;
	drop_queue(u);
	for (size_t i = 0; i < HELPERS; i++)
		unwind_helper_end(&u->helpers[i]);
	u->at_work = HELPERS;
	address_spaces_close(u->spaces);
	free(u->waiting);
	free(u);
}

void unwind_queue_prepare(struct unwind_queue *u, pid_t pid)
{
	const char *program;
	address_spaces_find(u->spaces, pid, 0, 0, true, &program);
}

void unwind_queue_forget(struct unwind_queue *u, pid_t pid)
{
	address_spaces_forget(u->spaces, pid);
}

static void request(struct unwind_queue *u, uint32_t space, const struct ft_event_sample *e,
		    const struct ft_event_sample_stack *whole, bool callers)
{
	static struct unwind_request r;
	r = (struct unwind_request){
	    .kind = UNWIND_SAMPLE, .space = space, .serial = u->next - 1, .flag = callers};
	size_t bytes =
	    offsetof(struct unwind_request, sample) + offsetof(struct ft_event_sample_stack, stack);
	if (callers) {
		size_t stack =
		    whole->stack_bytes < FT_USER_STACK_BYTES ? whole->stack_bytes : FT_USER_STACK_BYTES;
		memcpy(&r.sample, whole, offsetof(struct ft_event_sample_stack, stack) + stack);
		/* Kernel addresses are not passed to the helper. */
		memset(r.sample.kernel, 0, sizeof r.sample.kernel);
		bytes += stack;
	} else {
		r.sample.sample = *e;
	}
	enqueue(u, &r, bytes, -1);
}

void unwind_queue_add(struct unwind_queue *u, const struct ft_cpu_sample *record,
		      const struct ft_event_sample *e, const struct ft_event_sample_stack *whole,
		      pid_t parent)
{
	const char *program = "";
	bool time = has_helper(u) && u->budget_ns > -NS_PER_TICK && u->next - u->first < WAITING &&
		    u->queue_bytes < QUEUE_BYTES;
	bool callers = whole && time && u->budget_ns > 0;
	uint32_t space =
	    time ? address_spaces_find(u->spaces, (pid_t)e->tgid, parent, e->ip, false, &program) : 0;
	struct waiting *w = &u->waiting[u->next % WAITING], alone;
	w = space ? w : &alone;
	*w = (struct waiting){.since_ns = ft_now_ns(), .record = *record, .callers = callers};
	snprintf(w->program, sizeof w->program, "%s", program);
	if (!space) {
		finish(u, w, NULL, false);
		return;
	}
	if (whole && !callers)
		u->figures.not_unwound++;
	if (callers && whole->kernel_bytes > 0) {
		size_t bytes = (size_t)whole->kernel_bytes;
		bytes = bytes < sizeof w->kernel ? bytes : sizeof w->kernel;
		memcpy(w->kernel, whole->kernel, bytes);
		w->kernel_count = (uint32_t)(bytes / sizeof *w->kernel);
	}
	w->serial = u->next++;
	w->charged_ns = u->estimate_ns[callers];
	u->budget_ns -= (int64_t)w->charged_ns;
	if (u->answered + 1 == w->serial)
		u->word_ns = w->since_ns;
	request(u, space, e, whole, callers);
}

/* Delivers the answer of a sample. An answer to a sample that was given up is ignored. */
static void on_answer(struct unwind_queue *u, const struct unwind_answer *a)
{
	u->answered = a->serial;
	if (a->serial < u->first)
		return;
	give_up(u, a->serial - 1);
	struct waiting *w = &u->waiting[u->first++ % WAITING];
	uint64_t took_ns = a->took_ns < TAKES_AT_MOST_NS ? a->took_ns : TAKES_AT_MOST_NS;
	uint64_t *estimate_ns = &u->estimate_ns[w->callers];
	u->budget_ns += (int64_t)w->charged_ns - (int64_t)took_ns;
	*estimate_ns = (*estimate_ns * 15 + took_ns) / 16;
	u->figures.unwind_ns += took_ns;
	finish(u, w, a->text, a->cut);
}

static bool waits_for_answer(const struct unwind_queue *u)
{
	return has_helper(u) && u->answered + 1 < u->next;
}

static void take_answers(struct unwind_queue *u)
{
	static struct {
		struct unwind_answer answer;
		char end; /* for a text of maximum length */
	} a;
	const size_t head = offsetof(struct unwind_answer, text);
	while (waits_for_answer(u)) {
		int fd;
		ssize_t n =
		    receive_packet(helper(u)->requests, &a.answer, sizeof a.answer, &fd, MSG_DONTWAIT);
		if (fd >= 0)
			close(fd);
		if (n == -EAGAIN)
			return;
		/* It has exited, or sends invalid messages: answers come once, in the order of the samples.
		 */
		if (n < (ssize_t)head || a.answer.serial <= u->answered || a.answer.serial >= u->next) {
			replace_helper(u);
			return;
		}
		a.answer.text[n - (ssize_t)head] = 0;
		u->word_ns = ft_now_ns();
		on_answer(u, &a.answer);
	}
}

int unwind_queue_fd(const struct unwind_queue *u)
{
	return u && has_helper(u) ? u->helpers[u->at_work].questions : -1;
}

/* A debug file of this host. Its name consists of hexadecimal digits only. */
static int open_debug_file(const struct debug_file_question *q)
{
	char path[32 + 2 * BUILD_ID_MAX + 16] = "/usr/lib/debug/.build-id/";
	size_t at = strlen(path);
	if (q->bytes < 2 || q->bytes > BUILD_ID_MAX)
		return -1;
	for (size_t i = 0; i < q->bytes; i++)
		at +=
		    (size_t)snprintf(path + at, sizeof path - at, i == 0 ? "%02x/" : "%02x", q->build_id[i]);
	snprintf(path + at, sizeof path - at, ".debug");
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void unwind_queue_question(struct unwind_queue *u)
{
	struct debug_file_question q;
	if (!has_helper(u))
		return;
	int fd, questions = helper(u)->questions;
	ssize_t n = receive_packet(questions, &q, sizeof q, &fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	if (n == -EAGAIN)
		return;
	if (n != sizeof q) {
		replace_helper(u);
		return;
	}
	fd = open_debug_file(&q);
	u->word_ns = ft_now_ns();
	send_packet(questions, "", 1, fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
}

void unwind_queue_tick(struct unwind_queue *u)
{
	unwind_queue_question(u);
	take_answers(u);
	if (has_helper(u))
		send_queue(u);
	uint64_t now = ft_now_ns();
	while (u->first < u->next && u->waiting[u->first % WAITING].since_ns + ANSWER_NS < now)
		give_up(u, u->first);
	if (waits_for_answer(u) && u->word_ns + HUNG_NS < now)
		replace_helper(u);
	u->budget_ns = u->budget_ns > 0 ? NS_PER_TICK : u->budget_ns + NS_PER_TICK;
}

void unwind_queue_settle(struct unwind_queue *u)
{
	uint64_t end_ns = ft_now_ns() + ANSWER_NS, now;
	while (has_helper(u) && u->first < u->next && (now = ft_now_ns()) < end_ns) {
		struct pollfd fds[] = {
		    {.fd = helper(u)->requests, .events = (short)(POLLIN | (u->queue ? POLLOUT : 0))},
		    {.fd = helper(u)->questions, .events = POLLIN}};
		poll(fds, 2, (int)((end_ns - now) / 1000000) + 1);
		unwind_queue_question(u);
		take_answers(u);
		if (has_helper(u))
			send_queue(u);
	}
	give_up(u, UINT64_MAX);
}

struct unwind_queue_figures unwind_queue_so_far(const struct unwind_queue *u)
{
	struct unwind_queue_figures f = u->figures;
	for (size_t i = 0; i < HELPERS; i++)
		f.helper_cpu_ns += cpu_time_ns(u->helpers[i].pid);
	f.helper = has_helper(u) ? u->helpers[u->at_work].pid : 0;
	return f;
}
