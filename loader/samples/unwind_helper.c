/* SPDX-License-Identifier: MIT */
/* libdw is large, and it reads files that the owner of a target made. So it runs not in the privileged
 * recorder but in a process without privileges: an attacker who exploits an error in it gains only that
 * process. The process may also hang or crash; the recorder handles that (unwind_queue.c). */
#include "loader/samples/unwind_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/samples/stack_text.h"
#include "loader/samples/unwind_messages.h"
#include "loader/system/cpu_time.h"
#include "loader/system/helper_process.h"
#include "loader/system/packets.h"
#include "loader/system/privileges.h"

enum {
	SOCKET_BYTES = 8 << 20, /* for the samples of one tick of the recorder on a large host */
};

/* A debug_file_finder: asks the recorder. */
static int ask(void *context, const uint8_t *build_id, size_t bytes)
{
	const int *socket = context;
	struct debug_file_question question = {.bytes = (uint8_t)bytes};
	char unused;
	int fd;
	if (bytes > BUILD_ID_MAX)
		return -1;
	memcpy(question.build_id, build_id, bytes);
	if (send_packet(*socket, &question, sizeof question, -1, 0))
		return -1;
	if (receive_packet(*socket, &unused, sizeof unused, &fd, 0) <= 0)
		_exit(0); /* the recorder has exited */
	return fd;
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
	send_packet(socket, &a, offsetof(struct unwind_answer, text) + length, -1, 0);
}

/* Runs until the recorder has exited. */
static void serve(int requests, int questions)
{
	struct unwinder *u = unwinder_open(ask, &questions);
	static struct unwind_request r;
	int fd;
	while (u && receive_packet(requests, &r, sizeof r, &fd, 0) > 0) {
		switch (r.kind) {
		case UNWIND_BEGIN_SPACE:
			unwinder_begin_space(u, r.space);
			break;
		case UNWIND_ADD_FILE:
			unwinder_add_file(u, r.space, &r.file, fd);
			break;
		case UNWIND_END_SPACE:
			unwinder_end_space(u, r.space, r.flag);
			break;
		case UNWIND_FORGET_SPACE:
			unwinder_forget_space(u, r.space);
			break;
		case UNWIND_SAMPLE:
			answer(requests, u, &r);
			break;
		}
	}
	unwinder_close(u);
}

static void live(pid_t recorder, const void *context)
{
	(void)context;
	unsetenv("DEBUGINFOD_URLS");
	if (privileges_confine_unwinding(recorder))
		_exit(3);
	serve(HELPER_SOCKET, HELPER_KEPT);
}

int unwind_helper_start(struct unwind_helper *h)
{
	int questions[2];
	struct helper_process process;
	*h = (struct unwind_helper){.pid = 0, .requests = -1, .questions = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions))
		return -errno;
	const int err = helper_process_start(&process, &(struct helper_setup){.name = "forktail-unwind",
									      .live = live,
									      .kept = &questions[1],
									      .kept_count = 1,
									      .socket_bytes = SOCKET_BYTES,
									      .low_priority = true});
	close(questions[1]);
	if (err) {
		close(questions[0]);
		return err;
	}
	*h =
	    (struct unwind_helper){.pid = process.pid, .requests = process.socket, .questions = questions[0]};
	fcntl(h->requests, F_SETFL, O_NONBLOCK);
	return 0;
}

void unwind_helper_end(struct unwind_helper *h)
{
	if (h->questions >= 0)
		close(h->questions);
	helper_process_end(&(struct helper_process){.pid = h->pid, .socket = h->requests}, false);
	*h = (struct unwind_helper){.pid = 0, .requests = -1, .questions = -1};
}
