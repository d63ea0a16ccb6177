/* SPDX-License-Identifier: MIT */
/* A helper has no descriptor that it was not given, so a mistake in it cannot reach more than that. */
#include "loader/system/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/system/affinity.h"

/* Moves the descriptors up first, because each may be where another one belongs. */
static void keep_descriptors(int socket, const struct helper_setup *setup)
{
	enum { HIGH = 64 };
	int high[HELPER_KEPT_MAX], null = open("/dev/null", O_RDWR);
	const int high_socket = fcntl(socket, F_DUPFD, HIGH);
	for (size_t i = 0; i < setup->kept_count; i++)
		high[i] = fcntl(setup->kept[i], F_DUPFD, HIGH);
	for (int fd = 0; fd < HELPER_SOCKET && null >= 0; fd++)
		dup2(null, fd);
	dup2(high_socket, HELPER_SOCKET);
	for (size_t i = 0; i < setup->kept_count; i++)
		dup2(high[i] < 0 ? null : high[i], HELPER_KEPT + (int)i);
	close_range(HELPER_KEPT + (unsigned)setup->kept_count, ~0u, 0);
}

__attribute__((noreturn)) static void live(pid_t recorder, int socket, const struct helper_setup *setup)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	keep_descriptors(socket, setup);
	if (setup->low_priority)
		priority_lower();
	prctl(PR_SET_NAME, setup->name);
	setup->live(recorder, setup->context);
	_exit(0);
}

/* More than the default where allowed. */
static void enlarge(int socket, int bytes)
{
	if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
		setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

int helper_process_start(struct helper_process *h, const struct helper_setup *setup)
{
	int pair[2];
	const pid_t recorder = getpid();
	*h = (struct helper_process){.pid = 0, .socket = -1};
	if (setup->kept_count > HELPER_KEPT_MAX)
		return -E2BIG;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	for (int i = 0; i < 2 && setup->socket_bytes; i++)
		enlarge(pair[i], setup->socket_bytes);
	const pid_t pid = fork();
	const int err = pid < 0 ? -errno : 0;
	if (pid == 0)
		live(recorder, pair[1], setup);
	close(pair[1]);
	*h = (struct helper_process){.pid = pid > 0 ? pid : 0, .socket = pair[0]};
	if (err)
		helper_process_end(h, false);
	return err;
}

void helper_process_end(struct helper_process *h, bool wait)
{
	if (h->socket >= 0)
		close(h->socket);
	if (h->pid > 0) {
		if (!wait)
			kill(h->pid, SIGKILL);
		/* An ended helper may still be alive for a moment, in a kernel operation. It stays our child
		 * until then. */
		waitpid(h->pid, NULL, wait ? 0 : WNOHANG);
	}
	*h = (struct helper_process){.pid = 0, .socket = -1};
}
