/* SPDX-License-Identifier: MIT */
/* Switching the statistics on requires CAP_SYS_ADMIN, which is nearly all of root's power. The recorder must
 * not keep that for a whole recording. So a separate process with no other abilities does it: it reads a
 * byte, switches, and writes the byte back. */
#include "loader/attach/stats_switch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/system/privileges.h"

static int to_switch = -1;
static pid_t process;

__attribute__((noreturn)) static void live(pid_t recorder, int socket)
{
	int statistics = -1;
	char on;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(socket, 0);
	dup2(null, 1); /* otherwise an opened file could get one of these numbers, which libbpf treats as a
			  mistake */
	dup2(null, 2);
	close_range(3, ~0u, 0);
	prctl(PR_SET_NAME, "forktail-stats");
	if (privileges_confine_statistics(recorder))
		_exit(3);
	while (read(0, &on, 1) == 1) {
		if (on && statistics < 0) {
			statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
		} else if (!on && statistics >= 0) {
			close(statistics);
			statistics = -1;
		}
		on = statistics >= 0;
		if (write(0, &on, 1) != 1)
			break;
	}
	_exit(0);
}

int stats_switch_start(void)
{
	int pair[2];
	pid_t recorder = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	process = fork();
	int err = process < 0 ? -errno : 0;
	if (process == 0)
		live(recorder, pair[1]);
	close(pair[1]);
	if (err)
		close(pair[0]);
	else
		to_switch = pair[0];
	return err;
}

bool stats_switch(bool on)
{
	char byte = on;
	if (to_switch < 0)
		return false;
	if (write(to_switch, &byte, 1) == 1 && read(to_switch, &byte, 1) == 1)
		return byte;
	stats_switch_end();
	return false;
}

void stats_switch_end(void)
{
	if (to_switch < 0)
		return;
	close(to_switch);
	to_switch = -1;
	waitpid(process, NULL, 0);
}
