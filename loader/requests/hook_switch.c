/* SPDX-License-Identifier: MIT */
/* A process that reads a byte, attaches or detaches, and writes the result back. Attaching needs CAP_BPF and
 * CAP_PERFMON; the recorder keeps neither of them for a whole recording. */
#include "loader/requests/hook_switch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/system/privileges.h"

enum { SOCKET = 0, FIRST_PROGRAM = 3 };

/* Closes all descriptors but the socket and the programs, which follow each other from FIRST_PROGRAM on. */
static void keep_programs(int socket, const int *programs, size_t count)
{
	enum { HIGH = 64 };
	int high[HOOKS_MAX];
	for (size_t i = 0; i < count; i++)
		high[i] = fcntl(programs[i], F_DUPFD, HIGH);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(socket, SOCKET);
	dup2(null, 1);
	dup2(null, 2);
	for (size_t i = 0; i < count; i++)
		dup2(high[i], FIRST_PROGRAM + (int)i);
	close_range(FIRST_PROGRAM + (unsigned)count, ~0u, 0);
}

static int switch_all(bool on, int *links, size_t count)
{
	int err = 0;
	for (size_t i = 0; i < count; i++) {
		if (on && links[i] < 0) {
			links[i] = bpf_raw_tracepoint_open(NULL, FIRST_PROGRAM + (int)i);
			err = links[i] < 0 ? links[i] : err;
		} else if (!on && links[i] >= 0) {
			close(links[i]);
			links[i] = -1;
		}
	}
	return err;
}

__attribute__((noreturn)) static void live(pid_t recorder, int socket, const int *programs, size_t count)
{
	int links[HOOKS_MAX], result;
	char on;
	memset(links, -1, sizeof links);
	keep_programs(socket, programs, count);
	prctl(PR_SET_NAME, "forktail-switch");
	if (privileges_confine_switch(recorder))
		_exit(3);
	while (read(SOCKET, &on, 1) == 1) {
		result = switch_all(on, links, count);
		if (write(SOCKET, &result, sizeof result) != sizeof result)
			break;
	}
	_exit(0);
}

int hook_switch_start(struct hook_switch *s, const int *programs, size_t count)
{
	int pair[2];
	pid_t recorder = getpid();
	*s = (struct hook_switch){.pid = 0, .socket = -1};
	if (count > HOOKS_MAX)
		return -E2BIG;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	s->pid = fork();
	int err = s->pid < 0 ? -errno : 0;
	if (s->pid == 0)
		live(recorder, pair[1], programs, count);
	close(pair[1]);
	s->socket = pair[0];
	if (err)
		hook_switch_end(s);
	return err;
}

int hook_switch_set(const struct hook_switch *s, bool on)
{
	char byte = on;
	int result;
	if (write(s->socket, &byte, 1) != 1 || read(s->socket, &result, sizeof result) != sizeof result)
		return -EPIPE;
	return result;
}

void hook_switch_end(struct hook_switch *s)
{
	if (s->socket < 0)
		return;
	close(s->socket);
	if (s->pid > 0)
		waitpid(s->pid, NULL, 0);
	*s = (struct hook_switch){.pid = 0, .socket = -1};
}
