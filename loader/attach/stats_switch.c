/* SPDX-License-Identifier: MIT */
/* Switching the statistics on requires CAP_SYS_ADMIN, which is nearly all of root's power. The recorder must
 * not keep that for a whole recording. So a separate process with no other abilities does it: it reads a
 * byte, switches, and writes the byte back. */
#include "loader/attach/stats_switch.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "loader/system/helper_process.h"
#include "loader/system/privileges.h"

static struct helper_process process = {.pid = 0, .socket = -1};

static void live(pid_t recorder, const void *context)
{
	int statistics = -1;
	char on;
	(void)context;
	if (privileges_confine_statistics(recorder))
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

int stats_switch_start(void)
{
	return helper_process_start(&process, &(struct helper_setup){.name = "forktail-stats", .live = live});
}

bool stats_switch(bool on)
{
	char byte = on;
	if (process.socket < 0)
		return false;
	if (write(process.socket, &byte, 1) == 1 && read(process.socket, &byte, 1) == 1)
		return byte;
	stats_switch_end();
	return false;
}

void stats_switch_end(void)
{
	helper_process_end(&process, true);
}
