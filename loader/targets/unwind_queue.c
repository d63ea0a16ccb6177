/* SPDX-License-Identifier: MIT */
/* Samples that wait for their stacks: the queue, the address spaces that the helpers know, and
 * /proc/PID/maps. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "bpf/events.h"
#include "common/text.h"
#include "loader/samples.h"
#include "loader/system.h"
#include "recording/recording.h"

/* Which files are in the memory of a process, as the unwinding helper knows it: a number for each address
 * space. A forked child shares its parent's, so nothing is sent again for it. */

struct address_spaces;

enum {
	SPACE_NONE = 0,
	SPACE_PENDING = UINT32_MAX, /* it is being looked up */
};

struct address_spaces_handler {
	/* Lookups have ended: address_spaces_find() may know more. */
	void (*resolved)(void *context);
	/* No process has this space any more. */
	void (*forget)(void *context, uint32_t space);
	void *context;
};

/* NULL: no memory. Answers of `files` are to be passed on by the three functions at the end. */
static struct address_spaces *address_spaces_open(struct target_files *files,
						  const struct address_spaces_handler *handler);
static void address_spaces_close(struct address_spaces *s);
/* The helper that knew the address spaces has exited: the next helper gets them again. */
static void address_spaces_forget_all(struct address_spaces *s);

/* Returns the address space of a process, or of its parent if the process has exited. If `address` is not 0
 * and in none of its files, the mappings are read again: the process loaded a library or called exec.
 * *program is the file name of the process' program, valid until the next call. `preload`: read its files
 * now. */
static uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
				    bool preload, const char **program);
/* The same, but looks nothing up. */
static uint32_t address_spaces_known(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
				     const char **program);
/* The process has ended. */
static void address_spaces_forget(struct address_spaces *s, pid_t pid);

static void address_spaces_maps(struct address_spaces *s, pid_t pid, const struct mapped_place *places,
				size_t count, const char *program);
static void address_spaces_no_maps(struct address_spaces *s, pid_t pid);
static void address_spaces_sent(struct address_spaces *s, uint32_t space, int error);

/* A sample whose process is still being looked up is held. Others wait for their answers in a ring,
 * identified by increasing serial numbers. An answer to a sample that was given up is recognized by its
 * number and ignored. Each request is charged to the budget at the recent price of an answer and corrected
 * when the answer arrives. Otherwise all samples of a tick would be sent before the first price is known. */

enum {
	HELD_MAX = 1024, /* samples */
	WAITING = 4096,	 /* samples without an answer; a power of two */
	QUEUE_BYTES = 8 << 20,
	/* CPU time: a fifth of a CPU since the last tick of the recorder. Samples with callers use this
	 * budget, samples without callers the same amount again. */
	SHARE = 5,
	LEAST_BUDGET_NS = 10000000,
	MOST_BUDGET_NS = 50000000,
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
	struct outgoing *prev, *next;
	size_t bytes;
	char request[];
};

/* A sample whose address space is being looked up. Its request is complete but for the space and the serial.
 */
struct held {
	struct held *prev, *next;
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
	struct held *held;
	size_t held_count;
	struct waiting *waiting; /* a ring */
	uint64_t first, next;	 /* serials of the oldest waiting sample and of the next one */
	uint64_t origin;	 /* the serial whose place is the ring's begin */
	uint64_t answered;	 /* the last one that was answered */
	uint64_t word_ns;	 /* when the helper last sent something, or had nothing to send */
	struct outgoing *queue;
	size_t queue_bytes;
	int64_t budget_ns;
	uint64_t ticked_ns;
	uint64_t estimate_ns[2]; /* CPU time of an answer, without and with callers */
	struct unwind_queue_figures figures;
};

static bool has_helper(const struct unwind_queue *u)
{
	return u->helper.pid > 0;
}

static struct waiting *place_of(const struct unwind_queue *u, uint64_t serial)
{
	return &u->waiting[(serial - u->origin) % WAITING];
}

static void drop_queue(struct unwind_queue *u)
{
	struct outgoing *o, *next;
	DL_FOREACH_SAFE(u->queue, o, next)
	{
		free(o);
	}
	u->queue = NULL;
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
		finish(u, place_of(u, u->first), NULL, false);
}

/* Finishes held samples without a name: all, or those that are older than `since_ns`. */
static void give_up_held(struct unwind_queue *u, uint64_t since_ns)
{
	while (u->held && u->held->sample.since_ns < since_ns) {
		struct held *h = u->held;
		DL_DELETE(u->held, h);
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
		DL_DELETE(u->queue, o);
		u->queue_bytes -= o->bytes;
		free(o);
	}
}

static void enqueue(struct unwind_queue *u, const struct unwind_request *request, size_t bytes)
{
	struct outgoing *o = has_helper(u) ? malloc(sizeof *o + bytes) : NULL;
	if (!o)
		return;
	o->bytes = bytes;
	memcpy(o->request, request, bytes);
	DL_APPEND(u->queue, o);
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
	u->first = u->next = 1;
	u->budget_ns = LEAST_BUDGET_NS;
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
	struct held *h, *next;
	DL_FOREACH_SAFE(u->held, h, next)
	{
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
	/* Few wait at a time: the rest of the ring takes no memory. */
	if (u->first == u->next)
		u->origin = u->next;
	struct waiting *w = place_of(u, u->next);
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
	DL_APPEND(u->held, h);
	u->held_count++;
}

/* Sends the held samples whose processes are known by now. */
static void admit_held(void *context)
{
	struct unwind_queue *u = context;
	struct held *h, *next;
	DL_FOREACH_SAFE(u->held, h, next)
	{
		const char *program;
		const uint32_t space =
		    address_spaces_known(u->spaces, h->pid, h->parent, h->address, &program);
		if (space == SPACE_PENDING)
			continue;
		DL_DELETE(u->held, h);
		u->held_count--;
		snprintf(h->sample.program, sizeof h->sample.program, "%s", program);
		if (space && has_room(u))
			admit(u, &h->sample, &h->request, h->bytes, space);
		else
			finish(u, &h->sample, NULL, false);
		free(h);
	}
}

void unwind_queue_add(struct unwind_queue *u, const struct ft_cpu_sample *record,
		      const struct ft_event_sample *e, const struct ft_event_sample_stack *whole,
		      pid_t parent)
{
	static struct unwind_request r;
	static struct waiting w;
	const char *program = "";
	const bool time = u->budget_ns > -LEAST_BUDGET_NS && has_room(u);
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
	struct waiting *w = place_of(u, u->first++);
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
	while (u->first < u->next && place_of(u, u->first)->since_ns + ANSWER_NS < now)
		give_up(u, u->first);
	give_up_held(u, now > HELD_NS ? now - HELD_NS : 0);
	if (waits_for_answer(u) && u->word_ns + HUNG_NS < now)
		end_helper(u);
	if (!has_helper(u) && restarts_due(&u->restarts, now) && start_helper(u))
		restarts_failed(&u->restarts, now);
	if (has_helper(u) && !u->linked)
		connect_files(u);
	uint64_t budget_ns = (now - u->ticked_ns) / SHARE;
	budget_ns = budget_ns < MOST_BUDGET_NS ? budget_ns : MOST_BUDGET_NS;
	u->budget_ns = (u->budget_ns > 0 ? 0 : u->budget_ns) + (int64_t)budget_ns;
	u->ticked_ns = now;
}

bool unwind_queue_waits(const struct unwind_queue *u)
{
	return u->first < u->next || u->held;
}

void unwind_queue_settle(struct unwind_queue *u)
{
	uint64_t end_ns = ft_now_ns() + ANSWER_NS, now;
	while (has_helper(u) && unwind_queue_waits(u) && (now = ft_now_ns()) < end_ns) {
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

/* Maps processes to address spaces. The table is limited by the number of targets: beyond twice that number,
 * the process sampled longest ago is removed. */

enum {
	PROCESSES_MAX = 2 * FT_MAX_TARGETS,
	/* A process' mappings are read again when an address is in none of them. That happens at most this
	 * often, and less and less often if it does not help: code generated at run time is in no file. */
	LOOK_AGAIN_NS = 1000000000,
	LOOKS_AT_MOST = 64, /* multiplied by this at most */
};

struct space {
	uint32_t id;
	bool ready; /* the unwinding helper has its files */
	size_t users;
	size_t count;
	struct mapped_place places[];
};

struct sampled_process {
	pid_t pid, parent;
	uint64_t looked_ns, used;
	unsigned patience; /* seconds until the next read */
	bool asked;	   /* its maps are being read */
	bool of_parent;	   /* no, but its parent's */
	bool ended, preload;
	uint64_t address; /* for which they are read; 0: for the first time */
	struct space *space;
	char program[NAME_MAX + 1];
};

struct address_spaces {
	struct target_files *files;
	struct address_spaces_handler handler;
	struct sampled_process *processes;
	size_t count, room;
	uint32_t ids;
	uint64_t finds;
};

static struct address_spaces *address_spaces_open(struct target_files *files,
						  const struct address_spaces_handler *handler)
{
	struct address_spaces *s = calloc(1, sizeof *s);
	if (s) {
		s->files = files;
		s->handler = *handler;
	}
	return s;
}

static void release(struct address_spaces *s, struct space *space)
{
	if (!space || --space->users)
		return;
	s->handler.forget(s->handler.context, space->id);
	free(space);
}

static struct sampled_process *known(struct address_spaces *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

static void close_process(struct address_spaces *s, struct sampled_process *p)
{
	release(s, p->space);
	*p = s->processes[--s->count];
}

static void address_spaces_forget_all(struct address_spaces *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].space && !--s->processes[i].space->users)
			free(s->processes[i].space);
	s->count = 0;
}

static void address_spaces_close(struct address_spaces *s)
{
	if (!s)
		return;
	address_spaces_forget_all(s);
	free(s->processes);
	free(s);
}

/* Returns a slot for one more process. NULL: no memory. */
static struct sampled_process *add(struct address_spaces *s)
{
	if (s->count == PROCESSES_MAX) {
		struct sampled_process *oldest = s->processes;
		for (size_t i = 1; i < s->count; i++)
			if (s->processes[i].used < oldest->used)
				oldest = &s->processes[i];
		close_process(s, oldest);
	}
	if (!grow(&s->processes, &s->room, s->count, sizeof *s->processes))
		return NULL;
	return memset(&s->processes[s->count++], 0, sizeof *s->processes);
}

static bool holds(const struct sampled_process *p, uint64_t address)
{
	for (size_t i = 0; p->space && i < p->space->count; i++)
		if (address >= p->space->places[i].start && address < p->space->places[i].end)
			return true;
	return false;
}

static void look(struct address_spaces *s, struct sampled_process *p, uint64_t address)
{
	p->looked_ns = ft_now_ns();
	p->address = address;
	p->asked = target_files_ask_maps(s->files, p->pid);
}

/* What is known of a process now. */
static uint32_t state_of(const struct sampled_process *p, const char **program)
{
	*program = p->program;
	return p->asked || (p->space && !p->space->ready) ? SPACE_PENDING
	       : p->space				  ? p->space->id
							  : SPACE_NONE;
}

static uint32_t address_spaces_known(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
				     const char **program)
{
	struct sampled_process *p = known(s, pid);
	*program = "";
	if (!p)
		p = parent ? known(s, parent) : NULL;
	/* Only what is not in the known files waits for the new ones. */
	if (p && p->asked && p->space && p->space->ready && holds(p, address)) {
		*program = p->program;
		return p->space->id;
	}
	return p ? state_of(p, program) : SPACE_NONE;
}

static uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
				    bool preload, const char **program)
{
	*program = "";
	if (!pid)
		return SPACE_NONE;
	struct sampled_process *p = known(s, pid);
	if (!p) {
		p = add(s);
		if (!p)
			return SPACE_NONE;
		*p =
		    (struct sampled_process){.pid = pid, .parent = parent, .patience = 1, .preload = preload};
		look(s, p, 0);
	} else if (!p->asked && address && !holds(p, address) &&
		   ft_now_ns() > p->looked_ns + (uint64_t)p->patience * LOOK_AGAIN_NS) {
		look(s, p, address);
	}
	p->used = ++s->finds;
	return address_spaces_known(s, pid, 0, address, program);
}

static void address_spaces_forget(struct address_spaces *s, pid_t pid)
{
	struct sampled_process *p = known(s, pid);
	if (!p)
		return;
	p->ended = true;
	if (!p->asked && (!p->space || p->space->ready))
		close_process(s, p);
}

/* ---- answers ---- */

static bool same(const struct space *a, const struct mapped_place *places, size_t count)
{
	return a->count == count && memcmp(a->places, places, count * sizeof *places) == 0;
}

/* A new space with these files, which are sent to the unwinding helper. NULL: no memory. */
static struct space *make_space(struct address_spaces *s, const struct sampled_process *p,
				const struct mapped_place *places, size_t count)
{
	struct space *space = malloc(sizeof *space + count * sizeof *places);
	if (!space)
		return NULL;
	*space = (struct space){.id = ++s->ids, .users = 1, .count = count};
	memcpy(space->places, places, count * sizeof *places);
	if (target_files_send(s->files, p->pid, space->id, p->preload))
		return space;
	free(space);
	return NULL;
}

static struct space *share(struct space *space)
{
	if (space)
		space->users++;
	return space;
}

/* A lookup has ended. Those of ended processes were kept for the samples that waited for it. */
static void resolve(struct address_spaces *s)
{
	s->handler.resolved(s->handler.context);
	for (size_t i = s->count; i--;) {
		struct sampled_process *p = &s->processes[i];
		if (p->ended && !p->asked && (!p->space || p->space->ready))
			close_process(s, p);
	}
}

static void inherit(struct sampled_process *p, const struct sampled_process *parent)
{
	p->asked = p->of_parent = false;
	p->space = share(parent->space);
	memcpy(p->program, parent->program, sizeof p->program);
}

/* To processes that exited before their maps were read. */
static void hand_down(struct address_spaces *s, const struct sampled_process *parent)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].of_parent && s->processes[i].parent == parent->pid)
			inherit(&s->processes[i], parent);
}

static void address_spaces_maps(struct address_spaces *s, pid_t pid, const struct mapped_place *places,
				size_t count, const char *program)
{
	struct sampled_process *p = known(s, pid);
	if (!p || !p->asked)
		return;
	p->asked = false;
	snprintf(p->program, sizeof p->program, "%s", program);
	if (!p->space || !same(p->space, places, count)) {
		const struct sampled_process *parent = p->parent ? known(s, p->parent) : NULL;
		struct space *before = p->space;
		p->space = parent && parent->space && same(parent->space, places, count)
			       ? share(parent->space)
			       : make_space(s, p, places, count);
		release(s, before);
	}
	if (p->address && !holds(p, p->address))
		p->patience = p->patience < LOOKS_AT_MOST ? 2 * p->patience : p->patience;
	hand_down(s, p);
	resolve(s);
}

static void address_spaces_no_maps(struct address_spaces *s, pid_t pid)
{
	const char *unused;
	struct sampled_process *p = known(s, pid);
	if (!p || !p->asked)
		return;
	p->asked = false;
	if (p->patience < LOOKS_AT_MOST)
		p->patience *= 2;
	const pid_t from = p->space ? 0 : p->parent;
	if (from && !known(s, from))
		address_spaces_find(s, from, 0, 0, false, &unused); /* the table may grow */
	const struct sampled_process *parent = from ? known(s, from) : NULL;
	p = known(s, pid);
	if (p && parent && !parent->asked)
		inherit(p, parent);
	else if (p)
		p->asked = p->of_parent = parent != NULL;
	if (p)
		hand_down(s, p);
	resolve(s);
}

static void address_spaces_sent(struct address_spaces *s, uint32_t space, int error)
{
	bool used = false;
	for (size_t i = 0; i < s->count; i++) {
		struct sampled_process *p = &s->processes[i];
		if (!p->space || p->space->id != space)
			continue;
		used = true;
		p->space->ready = true;
		if (error) {
			release(s, p->space);
			p->space = NULL;
		}
	}
	if (!used)
		s->handler.forget(s->handler.context, space);
	resolve(s);
}

/* A line of /proc/PID/maps is "start-end perms offset major:minor inode path". The kernel writes a newline in
 * a path as \012, so each line is one mapping. */

enum { MAPS_BYTES_MAX = 16 << 20 };

struct line {
	uint64_t start, end, inode;
	uint32_t device[2];
	bool executable;
	const char *path;
	size_t path_length;
};

/* False: not a mapping. */
static bool take_apart(const char *text, size_t length, struct line *l)
{
	char head[128], permissions[5];
	int at = 0;
	size_t head_length = length < sizeof head - 1 ? length : sizeof head - 1;
	memcpy(head, text, head_length);
	head[head_length] = 0;
	if (sscanf(head, "%" SCNx64 "-%" SCNx64 " %4s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64 "%n", &l->start,
		   &l->end, permissions, &l->device[0], &l->device[1], &l->inode, &at) != 6 ||
	    !at || l->start >= l->end)
		return false;
	l->executable = strlen(permissions) == 4 && permissions[2] == 'x';
	size_t path = (size_t)at + strspn(head + at, " ");
	l->path = text + path;
	l->path_length = length - path;
	return true;
}

static bool is_vdso(const struct line *l)
{
	return !l->inode && l->path_length == 6 && memcmp(l->path, "[vdso]", 6) == 0;
}

static void begin(struct mapped_file *f, const struct line *l)
{
	f->start = l->start;
	f->code_start = f->code_end = 0;
	f->inode = l->inode;
	memcpy(f->device, l->device, sizeof f->device);
	size_t length = l->path_length < sizeof f->path - 1 ? l->path_length : sizeof f->path - 1;
	memcpy(f->path, l->path, length);
	f->path[length] = 0;
}

void mappings_each(const char *text, mapping_handler found, void *context)
{
	struct mapped_file *f = calloc(1, sizeof *f);
	size_t count = 0;
	for (bool more = f; more && count < MAPPED_FILES;) {
		size_t length = strcspn(text, "\n");
		struct line l;
		more = *text;
		bool is_line = more && take_apart(text, length, &l);
		text += length + (text[length] == '\n');
		if (more && !is_line)
			continue;
		/* A file's memory beyond its end (.bss) has no file, and may be between its parts. */
		if (more && !l.inode && !is_vdso(&l) && !l.path_length)
			continue;
		bool same = more && l.start >= f->end && l.inode && l.inode == f->inode &&
			    l.device[0] == f->device[0] && l.device[1] == f->device[1];
		if (!same && f->code_start) {
			found(context, f);
			count++;
			f->code_start = 0;
		}
		if (!more || (!l.inode && !is_vdso(&l))) {
			f->inode = 0;
			continue;
		}
		if (!same)
			begin(f, &l);
		f->end = l.end;
		if (l.executable && !f->code_start) {
			f->code_start = l.start;
			f->code_end = l.end;
		}
	}
	free(f);
}

char *mappings_read(pid_t pid)
{
	char path[48];
	struct text maps = {NULL};
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	/* A process that has exited has an empty one. */
	if (text_read_at(&maps, AT_FDCWD, path, MAPS_BYTES_MAX) && maps.length)
		return maps.bytes;
	free(maps.bytes);
	return NULL;
}

void mappings_base_name(const char *path, char *name, size_t size)
{
	static const char deleted[] = " (deleted)";
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t length = strlen(base), tail = sizeof deleted - 1;
	if (length > tail && strcmp(base + length - tail, deleted) == 0)
		length -= tail;
	snprintf(name, size, "%.*s", (int)(length < size ? length : size), base);
}
