/* SPDX-License-Identifier: MIT */
/* Attaching takes milliseconds and rights that the recorder gives up, so a helper process does it. */
#include "loader/requests/request_hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "loader/attach/support.h"
#include "loader/requests/hook_switch.h"
#include "requests.skel.h"

/* Requests that take longer than a slice cannot be seen whole. */
enum { SLICE_MS = 2000 };

#define BUDGET 0.01 /* of a CPU, for a flight recorder */

void request_hooks_init(struct request_hooks *h, uint32_t sample, uint32_t period_ms)
{
	*h = (struct request_hooks){.switcher = {.pid = 0, .socket = -1},
				    .sample = sample,
				    .slices = period_ms != 0,
				    .on = true, /* as the first manifest will say */
				    .on_ms = period_ms,
				    .period_ms = period_ms};
}

/* Functions, if the kernel lacks the tracepoints. CONFIG_UNIX may be off. */
static void choose_programs(struct requests_bpf *s)
{
	enum { OLD_ARGUMENTS = 6 }; /* of tcp_recvmsg, until 5.18 */
	const bool by_functions = support_requests_by_functions();
	const bool old = support_function_arguments("tcp_recvmsg") == OLD_ARGUMENTS;
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, s->obj)
	{
		const char *section = bpf_program__section_name(prog), *name = strchr(section, '/') + 1;
		bpf_program__set_autoload(prog, strncmp(section, "tp_btf/", 7) == 0
						    ? !by_functions
						    : by_functions && support_has_function(name));
	}
	bpf_program__set_autoload(s->progs.request_leaves, true);
	if (by_functions)
		bpf_program__set_autoload(old ? s->progs.request_read_tcp : s->progs.request_read_tcp_old,
					  false);
}

int request_hooks_load(struct request_hooks *h, int targets_map, uint32_t pid_namespace)
{
	struct requests_bpf *s = h->skeleton = requests_bpf__open();
	if (!s)
		return -errno;
	s->rodata->pid_ns = pid_namespace;
	s->bss->sample_mask = h->sample - 1;
	choose_programs(s);
	int err = bpf_map__reuse_fd(s->maps.targets, targets_map);
	return err ? err : requests_bpf__load(s);
}

int request_hooks_ring(const struct request_hooks *h)
{
	return bpf_map__fd(h->skeleton->maps.requests_ring);
}

void request_hooks_serve(struct request_hooks *h, uint16_t port)
{
	h->skeleton->bss->served[port] = 1;
}

static int start_switch(struct request_hooks *h)
{
	int programs[HELPER_KEPT_MAX];
	size_t count = 0;
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, h->skeleton->obj)
	{
		if (bpf_program__autoload(prog) && count < HELPER_KEPT_MAX)
			programs[count++] = bpf_program__fd(prog);
	}
	return hook_switch_start(&h->switcher, programs, count);
}

/* The programs record nothing before all are attached, and nothing from the time on that the first one is
 * detached. */
int request_hooks_switch(struct request_hooks *h, bool on)
{
	h->skeleton->bss->epoch = 0;
	int err = h->slices ? hook_switch_set(&h->switcher, on ? HOOKS_ALL : HOOKS_NONE) : 0;
	if (err == -EPIPE) { /* the helper has ended, and with it what it had attached */
		helper_process_lost(&h->switcher, &switch_helper);
		err = start_switch(h);
		err = err ? err : hook_switch_set(&h->switcher, on ? HOOKS_ALL : HOOKS_NONE);
	}
	if (on && !err)
		h->skeleton->bss->epoch = ++h->epoch;
	h->on = on && !err;
	return err;
}

int request_hooks_attach(struct request_hooks *h)
{
	const int err = h->slices ? start_switch(h) : requests_bpf__attach(h->skeleton);
	return err ? err : request_hooks_switch(h, true);
}

void request_hooks_detach(struct request_hooks *h)
{
	h->skeleton->bss->epoch = 0;
	h->on = false;
	requests_bpf__detach(h->skeleton);
	helper_process_end(&h->switcher, true);
}

/* The programs' part of a CPU, from what the kernel measured in a short time. A run costs more than its own
 * time: the tracepoint's call. */
static double part_of_cpu(struct request_hooks *h, uint64_t measured_ns)
{
	const uint64_t call_ns = 40, runs_before = h->runs, ns_before = h->run_ns;
	struct bpf_program *prog;
	h->runs = h->run_ns = 0;
	bpf_object__for_each_program(prog, h->skeleton->obj)
	{
		struct bpf_prog_info info = {};
		__u32 size = sizeof info;
		if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			continue;
		h->runs += info.run_cnt;
		h->run_ns += info.run_time_ns;
	}
	return (double)(h->run_ns - ns_before + call_ns * (h->runs - runs_before)) / (double)measured_ns;
}

void request_hooks_measured(struct request_hooks *h, uint64_t measured_ns)
{
	if (!h->slices || !measured_ns)
		return;
	const double part = part_of_cpu(h, measured_ns);
	const double on_ms = part > BUDGET ? h->period_ms * BUDGET / part : h->period_ms;
	h->on_ms = on_ms > SLICE_MS ? (uint32_t)on_ms : SLICE_MS;
}

void request_hooks_reduce(struct request_hooks *h, uint32_t sample)
{
	h->sample = sample;
	h->skeleton->bss->sample_mask = sample - 1;
}

uint64_t request_hooks_count(const struct request_hooks *h, enum ft_request_counter counter)
{
	return h->skeleton ? h->skeleton->bss->request_counters[counter] : 0;
}

struct bpf_object *request_hooks_programs(const struct request_hooks *h)
{
	return h->skeleton ? h->skeleton->obj : NULL;
}

void request_hooks_close(struct request_hooks *h)
{
	helper_process_end(&h->switcher, true);
	requests_bpf__destroy(h->skeleton);
}
