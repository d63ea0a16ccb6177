/* SPDX-License-Identifier: MIT */
/* libdw is large, and it reads files that the owner of a target made. So it runs not in the privileged
 * recorder but in a process without privileges: an attacker who exploits an error in it gains only that
 * process. The process may also hang or crash; the recorder handles that (unwind_queue.c). */
#include "loader/samples/unwind_helper.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/samples/stack_text.h"
#include "loader/samples/unwind_messages.h"
#include "loader/system/cpu_time.h"
#include "loader/system/packets.h"
#include "loader/system/privileges.h"

enum {
	SOCKET_BYTES = 8 << 20, /* for the samples of one tick of the recorder on a large host */
	ANSWER_MS = 2000,	/* how long to wait for a debug file */
	CRASHES_MAX = 8,	/* each of them leaves memory behind */
};

static struct {
	int spaces, questions; /* -1: none */
	struct unwinder *unwinder;
	volatile struct helper_note *note;
	sigjmp_buf before; /* a request */
	int crashes;
} helper = {.spaces = -1, .questions = -1};

static void disconnect(void)
{
	close(helper.spaces);
	close(helper.questions);
	helper.spaces = helper.questions = -1;
}

/* A debug_file_finder: asks the process that opens files. */
static int ask(void *context, const uint8_t *build_id, size_t bytes)
{
	struct debug_file_question question = {.bytes = (uint8_t)bytes};
	struct pollfd p = {.fd = helper.questions, .events = POLLIN};
	char unused;
	int fd = -1;
	(void)context;
	if (bytes > BUILD_ID_MAX || helper.questions < 0)
		return -1;
	memcpy(question.build_id, build_id, bytes);
	if (send_packet(helper.questions, &question, sizeof question, -1, 0) || poll(&p, 1, ANSWER_MS) != 1 ||
	    receive_packet(helper.questions, &unused, sizeof unused, &fd, 0) <= 0) {
		/* A late answer would be taken for another one's. */
		close(helper.questions);
		helper.questions = -1;
	}
	return fd;
}

/* A file_reporter: what is read from now on. */
static void report_file(const uint64_t key[4], const char *name)
{
	helper_note_file(helper.note, key, name);
}

static void answer(int socket, struct unwinder *u, const struct unwind_request *r)
{
	static struct stack_text text;
	static struct unwind_answer a;
	uint64_t start_ns = own_cpu_ns();
	struct unwind_stack unwound;
	unwinder_unwind(u, r->space, &r->sample, r->flag, &unwound);
	stack_text_begin(&text, "");
	size_t program = text.length, i = 0;
	while (i < unwound.count &&
	       stack_text_frame(&text, unwound.frames[i].function, unwound.frames[i].module))
		i++;
	a.serial = r->serial;
	a.cut = unwound.cut || i < unwound.count;
	a.took_ns = own_cpu_ns() - start_ns;
	size_t length = text.length - program;
	memcpy(a.text, text.bytes + program, length);
	report_file(NULL, ""); /* before the recorder knows that it is done */
	send_packet(socket, &a, offsetof(struct unwind_answer, text) + length, -1, 0);
}

static void take_source(const int *fds, size_t count)
{
	if (count != 2)
		return;
	disconnect();
	helper.spaces = fds[0];
	helper.questions = fds[1];
}

static void handle(const struct unwind_request *r, int fd)
{
	switch (r->kind) {
	case UNWIND_BEGIN_SPACE:
		unwinder_begin_space(helper.unwinder, r->space);
		break;
	case UNWIND_ADD_FILE:
		unwinder_add_file(helper.unwinder, r->space, &r->file, fd);
		break;
	case UNWIND_END_SPACE:
		unwinder_end_space(helper.unwinder, r->space, r->flag);
		break;
	case UNWIND_FORGET_SPACE:
		unwinder_forget_space(helper.unwinder, r->space);
		break;
	case UNWIND_SAMPLE:
		answer(HELPER_SOCKET, helper.unwinder, r);
		break;
	}
	report_file(NULL, "");
}

/* A file that was shortened while libdw had it mapped. What libdw was doing is abandoned; if it held
 * something, that is lost, so after some of these the process is replaced. */
static void on_bus_error(int signal)
{
	(void)signal;
	if (++helper.crashes > CRASHES_MAX)
		_exit(4);
	siglongjmp(helper.before, 1);
}

/* Handles a request that may fail in the middle. The space that it was about is not used any more: its files
 * are not as they were. */
static void try_to_handle(const struct unwind_request *r, int fd)
{
	if (sigsetjmp(helper.before, 1) == 0) {
		handle(r, fd);
		return;
	}
	unwinder_abandon_space(helper.unwinder, r->space);
	if (r->kind == UNWIND_SAMPLE)
		answer(HELPER_SOCKET, helper.unwinder, r);
	report_file(NULL, "");
}

/* Takes what is there about address spaces: a sample may be about them. */
static void take_spaces(struct unwind_request *r)
{
	int fd;
	while (helper.spaces >= 0) {
		const ssize_t n = receive_packet(helper.spaces, r, sizeof *r, &fd, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			close(helper.spaces); /* its process has ended: there will be another one */
			helper.spaces = -1;
			return;
		}
		if (r->kind <= UNWIND_END_SPACE)
			try_to_handle(r, fd);
		else if (fd >= 0)
			close(fd);
	}
}

/* Runs until the recorder has exited. */
static void serve(void)
{
	static struct unwind_request r, of_space;
	for (;;) {
		int fds[2];
		size_t count;
		struct pollfd polled[] = {{.fd = HELPER_SOCKET, .events = POLLIN},
					  {.fd = helper.spaces, .events = POLLIN}};
		poll(polled, 2, -1);
		if (!polled[0].revents) {
			take_spaces(&of_space);
			continue;
		}
		if (receive_packet_fds(HELPER_SOCKET, &r, sizeof r, fds, 2, &count, 0) <= 0)
			return;
		take_spaces(&of_space);
		if (r.kind == UNWIND_SOURCE)
			take_source(fds, count);
		else
			try_to_handle(&r, -1);
	}
}

static void live(pid_t parent, size_t kept_count)
{
	(void)kept_count;
	unsetenv("DEBUGINFOD_URLS");
	helper.note = helper_note_of(&unwind_helper);
	helper.unwinder = unwinder_open(ask, NULL, report_file);
	if (!helper.unwinder || signal(SIGBUS, on_bus_error) == SIG_ERR ||
	    privileges_confine_unwinding(parent))
		_exit(3);
	serve();
}

const struct helper_setup unwind_helper = {
    .name = "forktail-unwind", .live = live, .socket_bytes = SOCKET_BYTES, .low_priority = true};
