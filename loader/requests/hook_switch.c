/* SPDX-License-Identifier: MIT */
/* The process reads a byte, attaches or detaches, and writes the result back. Attaching needs CAP_BPF and
 * CAP_PERFMON; the recorder keeps neither of them for a whole recording. */
#include "loader/requests/hook_switch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "loader/system/privileges.h"

static int switch_programs(unsigned on, int *links, size_t count)
{
	int err = 0;
	for (size_t i = 0; i < count; i++) {
		const bool wanted = on >> i & 1;
		if (wanted && links[i] < 0) {
			links[i] = bpf_raw_tracepoint_open(NULL, HELPER_KEPT + (int)i);
			err = links[i] < 0 ? links[i] : err;
		} else if (!wanted && links[i] >= 0) {
			close(links[i]);
			links[i] = -1;
		}
	}
	return err;
}

static void live(pid_t parent, size_t kept_count)
{
	int links[HELPER_KEPT_MAX], result;
	unsigned char on;
	memset(links, -1, sizeof links);
	if (privileges_confine_switch(parent))
		_exit(3);
	while (read(HELPER_SOCKET, &on, 1) == 1) {
		result = switch_programs(on, links, kept_count);
		if (write(HELPER_SOCKET, &result, sizeof result) != sizeof result)
			break;
	}
}

const struct helper_setup switch_helper = {.name = "forktail-switch", .live = live};

int hook_switch_start(struct helper_process *h, const int *programs, size_t count)
{
	return helper_process_start(h, &switch_helper, programs, count);
}

int hook_switch_set(const struct helper_process *h, unsigned on)
{
	unsigned char byte = (unsigned char)on;
	int result;
	if (write(h->socket, &byte, 1) != 1 || helper_process_answer(h, &result, sizeof result, NULL))
		return -EPIPE;
	return result;
}
