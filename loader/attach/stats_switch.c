/* SPDX-License-Identifier: MIT */
/* Switching the statistics on requires CAP_SYS_ADMIN, which is nearly all of root's power. The recorder must
 * not keep that for a whole recording. So a separate process with no other abilities does it: it reads a
 * byte, switches, and writes the byte back. */
#include "loader/attach/stats_switch.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <unistd.h>

#include "loader/system/helper_process.h"
#include "loader/system/privileges.h"
#include "loader/system/restarts.h"
#include "recording/recording.h"

static struct helper_process process = {.pid = 0, .socket = -1};
static struct restarts restarts;

static void live(pid_t parent, size_t kept_count)
{
	int statistics = -1;
	char on;
	(void)kept_count;
	if (privileges_confine_statistics(parent))
		_exit(3);
	while (read(HELPER_SOCKET, &on, 1) == 1) {
		if (on && statistics < 0) {
			statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
		} else if (!on && statistics >= 0) {
			close(statistics);
			statistics = -1;
		}
		on = statistics >= 0;
		if (write(HELPER_SOCKET, &on, 1) != 1)
			break;
	}
}

const struct helper_setup stats_helper = {.name = "forktail-stats", .live = live};

int stats_switch_start(void)
{
	return helper_process_start(&process, &stats_helper, NULL, 0);
}

bool stats_switch(bool on)
{
	char byte = on;
	const uint64_t now = ft_now_ns();
	if (process.socket < 0 && (!restarts_due(&restarts, now) || stats_switch_start()))
		return false;
	if (write(process.socket, &byte, 1) == 1 && !helper_process_answer(&process, &byte, 1, NULL))
		return byte;
	helper_process_lost(&process, &stats_helper);
	restarts_ended(&restarts, now);
	fputs(
	    "forktail record: the helper process that switches the kernel's statistics ended or hangs. It is "
	    "started again\n",
	    stderr);
	return false;
}

void stats_switch_end(void)
{
	helper_process_end(&process, true);
}
