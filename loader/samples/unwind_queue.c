/* SPDX-License-Identifier: MIT */
/* A sample whose process is still being looked up is held. Others wait for their answers in a ring,
 * identified by increasing serial numbers. An answer to a sample that was given up is recognized by its
 * number and ignored. Each request is charged to the budget at the recent price of an answer and corrected
 * when the answer arrives. Otherwise all samples of a tick would be sent before the first price is known. */
#include "loader/samples/unwind_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/text/visible.h"
#include "loader/samples/address_spaces.h"
#include "loader/samples/stack_text.h"
#include "loader/samples/unwind_helper.h"
#include "loader/samples/unwind_messages.h"
#include "loader/system/cpu_time.h"
#include "loader/system/packets.h"
#include "loader/system/restarts.h"
#include "recording/recording.h"

enum {
	HELD_MAX = 1024, /* samples */
	WAITING = 4096,	 /* samples without an answer; a power of two */
	QUEUE_BYTES = 8 << 20,
	/* CPU time per tick of the recorder: a fifth of a CPU. Samples with callers use this budget, samples
	 * without callers the same amount again. */
	NS_PER_TICK = 10000000,
	FIRST_ESTIMATE_NS = 50000,
	ANSWER_NS = 1000000000, /* how long to wait for an answer */
	TAKES_AT_MOST_NS = 1000000000,
};
#define HUNG_NS 10000000000ull /* without any message */
#define HELD_NS 5000000000ull  /* how long a sample waits for its process to be looked up */

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
	char request[];
};

/* A sample whose address space is being looked up. Its request is complete but for the space and the serial.
 */
struct held {
	struct held *next;
	pid_t pid, parent;
	uint64_t address;
	struct waiting sample;
	size_t bytes;
	struct unwind_request request;
};

struct unwind_queue {
	unwind_queue_handler handler;
	void *context;
	struct target_files *files;
	struct helper_process helper;
	struct restarts restarts;
	bool linked; /* to the helper that opens files */
	struct address_spaces *spaces;
	struct held *held, **held_end;
	size_t held_count;
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
	return u->helper.pid > 0;
}

static void drop_queue(struct unwind_queue *u)
{
	while (u->queue) {
		struct outgoing *o = u->queue;
		u->queue = o->next;
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

/* Finishes held samples without a name: all, or those that are older than `since_ns`. */
static void give_up_held(struct unwind_queue *u, uint64_t since_ns)
{
	while (u->held && u->held->sample.since_ns < since_ns) {
		struct held *h = u->held;
		u->held = h->next;
		u->held_end = u->held ? u->held_end : &u->held;
		u->held_count--;
		finish(u, &h->sample, NULL, false);
		free(h);
	}
}

/* The file that the helper was reading when it ended is not read again. */
static void blame_file(struct unwind_queue *u, char *what, size_t size)
{
	const struct helper_note note = helper_note_read(&unwind_helper);
	char visible[sizeof note.file * VISIBLE_MOST + 1];
	if (!(note.key[0] | note.key[1] | note.key[2] | note.key[3]))
		return;
	target_files_refuse(u->files, note.key);
	visible_text(visible, sizeof visible, note.file, strlen(note.file));
	snprintf(what, size, " while it read %.80s, which is not read again", visible);
}

/* The helper has exited or does not answer: the next one starts without any state. */
static void end_helper(struct unwind_queue *u)
{
	char what[160] = "";
	u->figures.helper_cpu_ns += cpu_time_ns(u->helper.pid);
	blame_file(u, what, sizeof what);
	helper_process_lost(&u->helper, &unwind_helper);
	restarts_ended(&u->restarts, ft_now_ns());
	drop_queue(u);
	give_up(u, UINT64_MAX);
	give_up_held(u, UINT64_MAX);
	address_spaces_forget_all(u->spaces);
	u->answered = u->next - 1;
	fprintf(stderr,
		"forktail record: the helper process that names samples ended%s. It is started again\n",
		what);
}

/* Sends queued requests until the socket is full. */
static void send_queue(struct unwind_queue *u)
{
	while (u->queue) {
		struct outgoing *o = u->queue;
		if (send_packet(u->helper.socket, o->request, o->bytes, -1, MSG_DONTWAIT))
			return; /* full, or it has exited, which is noticed when answers are read */
		u->queue = o->next;
		u->queue_end = u->queue ? u->queue_end : &u->queue;
		u->queue_bytes -= o->bytes;
		free(o);
	}
}

static void enqueue(struct unwind_queue *u, const struct unwind_request *request, size_t bytes)
{
	struct outgoing *o = has_helper(u) ? malloc(sizeof *o + bytes) : NULL;
	if (!o)
		return;
	*o = (struct outgoing){.next = NULL, .bytes = bytes};
	memcpy(o->request, request, bytes);
	*u->queue_end = o;
	u->queue_end = &o->next;
	u->queue_bytes += bytes;
	send_queue(u);
}

static void forget_space(void *context, uint32_t space)
{
	const struct unwind_request r = {.kind = UNWIND_FORGET_SPACE, .space = space};
	enqueue(context, &r, offsetof(struct unwind_request, file));
}

/* Connects the helper to the one that opens files: address spaces come one way, questions the other. */
static void connect_files(void *context)
{
	struct unwind_queue *u = context;
	const struct unwind_request r = {.kind = UNWIND_SOURCE};
	int spaces[2], questions[2];
	u->linked = false;
	if (!has_helper(u) || target_files_fd(u->files) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, spaces))
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions)) {
		close(spaces[0]);
		close(spaces[1]);
		return;
	}
	u->linked = send_packet_fds(u->helper.socket, &r, offsetof(struct unwind_request, file),
				    (const int[]){spaces[0], questions[0]}, 2, MSG_DONTWAIT) == 0;
	close(spaces[0]);
	close(questions[0]);
	target_files_connect(u->files, spaces[1], questions[1]);
}

static int start_helper(struct unwind_queue *u)
{
	const int err = helper_process_start(&u->helper, &unwind_helper, NULL, 0);
	if (err)
		return err;
	fcntl(u->helper.socket, F_SETFL, O_NONBLOCK);
	u->word_ns = ft_now_ns();
	connect_files(u);
	return 0;
}

static void on_maps(void *context, pid_t pid, const struct mapped_place *places, size_t count,
		    const char *program)
{
	address_spaces_maps(((struct unwind_queue *)context)->spaces, pid, places, count, program);
}

static void on_no_maps(void *context, pid_t pid)
{
	address_spaces_no_maps(((struct unwind_queue *)context)->spaces, pid);
}

static void on_sent(void *context, uint32_t space, int error)
{
	address_spaces_sent(((struct unwind_queue *)context)->spaces, space, error);
}

static void admit_held(void *context);

struct unwind_queue *unwind_queue_open(struct target_files *files)
{
	struct unwind_queue *u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	u->files = files;
	u->queue_end = &u->queue;
	u->held_end = &u->held;
	u->first = u->next = 1;
	u->budget_ns = NS_PER_TICK;
	u->estimate_ns[0] = u->estimate_ns[1] = FIRST_ESTIMATE_NS;
	u->helper = (struct helper_process){.socket = -1};
	u->spaces = address_spaces_open(
	    files,
	    &(struct address_spaces_handler){.resolved = admit_held, .forget = forget_space, .context = u});
	u->waiting = calloc(WAITING, sizeof *u->waiting);
	if (!u->spaces || !u->waiting || start_helper(u)) {
		unwind_queue_close(u);
		return NULL;
	}
	target_files_handle(files, &(struct target_files_handler){.maps = on_maps,
								  .no_maps = on_no_maps,
								  .sent = on_sent,
								  .restarted = connect_files,
								  .context = u});
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
	target_files_handle(u->files, &(struct target_files_handler){.context = NULL});
	drop_queue(u);
	while (u->held) {
		struct held *h = u->held;
		u->held = h->next;
		free(h);
	}
	helper_process_end(&u->helper, false);
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
	target_files_forget(u->files, pid);
	address_spaces_forget(u->spaces, pid);
}

/* Fills a request; returns its size. */
static size_t describe(struct unwind_request *r, const struct ft_event_sample *e,
		       const struct ft_event_sample_stack *whole, bool callers)
{
	const size_t head =
	    offsetof(struct unwind_request, sample) + offsetof(struct ft_event_sample_stack, stack);
	memset(r, 0, head);
	r->kind = UNWIND_SAMPLE;
	r->flag = callers;
	if (!callers) {
		r->sample.sample = *e;
		return head;
	}
	const size_t stack =
	    whole->stack_bytes < FT_USER_STACK_BYTES ? whole->stack_bytes : FT_USER_STACK_BYTES;
	memcpy(&r->sample, whole, offsetof(struct ft_event_sample_stack, stack) + stack);
	/* Kernel addresses are not passed to the helper. */
	memset(r->sample.kernel, 0, sizeof r->sample.kernel);
	return head + stack;
}

/* Sends a sample whose address space is known. */
static void admit(struct unwind_queue *u, const struct waiting *sample, struct unwind_request *r,
		  size_t bytes, uint32_t space)
{
	struct waiting *w = &u->waiting[u->next % WAITING];
	*w = *sample;
	w->serial = u->next++;
	w->charged_ns = u->estimate_ns[w->callers];
	u->budget_ns -= (int64_t)w->charged_ns;
	if (u->answered + 1 == w->serial)
		u->word_ns = ft_now_ns();
	r->space = space;
	r->serial = w->serial;
	enqueue(u, r, bytes);
}

static bool has_room(const struct unwind_queue *u)
{
	return has_helper(u) && u->next - u->first < WAITING && u->queue_bytes < QUEUE_BYTES;
}

static void hold(struct unwind_queue *u, const struct waiting *sample, const struct ft_event_sample *e,
		 pid_t parent, const struct unwind_request *r, size_t bytes)
{
	struct held *h = u->held_count < HELD_MAX ? malloc(sizeof *h) : NULL;
	if (!h) {
		finish(u, sample, NULL, false);
		return;
	}
	*h = (struct held){
	    .pid = (pid_t)e->tgid, .parent = parent, .address = e->ip, .sample = *sample, .bytes = bytes};
	memcpy(&h->request, r, bytes);
	*u->held_end = h;
	u->held_end = &h->next;
	u->held_count++;
}

/* Sends the held samples whose processes are known by now. */
static void admit_held(void *context)
{
	struct unwind_queue *u = context;
	struct held **at = &u->held;
	while (*at) {
		struct held *h = *at;
		const char *program;
		const uint32_t space =
		    address_spaces_known(u->spaces, h->pid, h->parent, h->address, &program);
		if (space == SPACE_PENDING) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		u->held_count--;
		snprintf(h->sample.program, sizeof h->sample.program, "%s", program);
		if (space && has_room(u))
			admit(u, &h->sample, &h->request, h->bytes, space);
		else
			finish(u, &h->sample, NULL, false);
		free(h);
	}
	u->held_end = at;
}

void unwind_queue_add(struct unwind_queue *u, const struct ft_cpu_sample *record,
		      const struct ft_event_sample *e, const struct ft_event_sample_stack *whole,
		      pid_t parent)
{
	static struct unwind_request r;
	static struct waiting w;
	const char *program = "";
	const bool time = u->budget_ns > -NS_PER_TICK && has_room(u);
	const bool callers = whole && time && u->budget_ns > 0;
	const uint32_t space =
	    time ? address_spaces_find(u->spaces, (pid_t)e->tgid, parent, e->ip, false, &program)
		 : SPACE_NONE;
	w = (struct waiting){.since_ns = ft_now_ns(), .record = *record, .callers = callers};
	snprintf(w.program, sizeof w.program, "%s", program);
	if (space == SPACE_NONE) {
		finish(u, &w, NULL, false);
		return;
	}
	if (whole && !callers)
		u->figures.not_unwound++;
	if (callers && whole->kernel_bytes > 0) {
		size_t bytes = (size_t)whole->kernel_bytes;
		bytes = bytes < sizeof w.kernel ? bytes : sizeof w.kernel;
		memcpy(w.kernel, whole->kernel, bytes);
		w.kernel_count = (uint32_t)(bytes / sizeof *w.kernel);
	}
	const size_t bytes = describe(&r, e, whole, callers);
	if (space == SPACE_PENDING)
		hold(u, &w, e, parent, &r, bytes);
	else
		admit(u, &w, &r, bytes, space);
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
		ssize_t n = receive_packet(u->helper.socket, &a.answer, sizeof a.answer, &fd, MSG_DONTWAIT);
		if (fd >= 0)
			close(fd);
		if (n == -EAGAIN)
			return;
		/* It has exited, or sends invalid messages: answers come once, in the order of the samples.
		 */
		if (n < (ssize_t)head || a.answer.serial <= u->answered || a.answer.serial >= u->next) {
			end_helper(u);
			return;
		}
		a.answer.text[n - (ssize_t)head] = 0;
		u->word_ns = ft_now_ns();
		on_answer(u, &a.answer);
	}
}

void unwind_queue_tick(struct unwind_queue *u)
{
	take_answers(u);
	if (has_helper(u))
		send_queue(u);
	const uint64_t now = ft_now_ns();
	while (u->first < u->next && u->waiting[u->first % WAITING].since_ns + ANSWER_NS < now)
		give_up(u, u->first);
	give_up_held(u, now > HELD_NS ? now - HELD_NS : 0);
	if (waits_for_answer(u) && u->word_ns + HUNG_NS < now)
		end_helper(u);
	if (!has_helper(u) && restarts_due(&u->restarts, now) && start_helper(u))
		restarts_failed(&u->restarts, now);
	if (has_helper(u) && !u->linked)
		connect_files(u);
	u->budget_ns = u->budget_ns > 0 ? NS_PER_TICK : u->budget_ns + NS_PER_TICK;
}

void unwind_queue_settle(struct unwind_queue *u)
{
	uint64_t end_ns = ft_now_ns() + ANSWER_NS, now;
	while (has_helper(u) && (u->first < u->next || u->held) && (now = ft_now_ns()) < end_ns) {
		struct pollfd fds[] = {
		    {.fd = u->helper.socket, .events = (short)(POLLIN | (u->queue ? POLLOUT : 0))},
		    {.fd = target_files_fd(u->files), .events = POLLIN}};
		poll(fds, 2, (int)((end_ns - now) / 1000000) + 1);
		target_files_take(u->files);
		take_answers(u);
		if (has_helper(u))
			send_queue(u);
	}
	give_up(u, UINT64_MAX);
	give_up_held(u, UINT64_MAX);
}

struct unwind_queue_figures unwind_queue_so_far(const struct unwind_queue *u)
{
	struct unwind_queue_figures f = u->figures;
	const struct target_files_figures files = target_files_so_far(u->files);
	f.helper_cpu_ns += cpu_time_ns(u->helper.pid) + files.cpu_ns;
	f.helper = u->helper.pid;
	f.files_helper = files.pid;
	return f;
}
