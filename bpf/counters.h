/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPU's counters (cycles, instructions, cache misses), read with each CPU sample: what was counted since
 * the previous one, if the same thread kept the CPU. Nothing is added to the switch path, and a stall on the
 * CPU is long enough to have many samples. The events count for all tasks of a CPU. */
#ifndef FORKTAIL_BPF_COUNTERS_H
#define FORKTAIL_BPF_COUNTERS_H

#include "state.h"

enum { COUNTER_ENTRIES = FT_MAX_CPUS * FT_CPU_COUNTERS };

/* The recorder puts a CPU's events here; the kernel allows a CPU only its own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, COUNTER_ENTRIES);
	__type(key, u32);
	__type(value, u32);
} counter_events SEC(".maps");

const volatile __u16 counters = FT_COUNTERS_NONE; /* enum ft_cpu_counters */

/* The last reading of a CPU. */
struct reading {
	u64 t_ns; /* 0: none */
	u64 value[FT_CPU_COUNTERS];
	u64 switches; /* of the thread until then */
	u32 tid, counted;
};
static struct reading readings[FT_MAX_CPUS];

static __always_inline void read_counters(struct reading *r)
{
	u32 first = bpf_get_smp_processor_id() * FT_CPU_COUNTERS;
	for (u32 i = 0; i < FT_CPU_COUNTERS; i++) {
		struct bpf_perf_event_value v;
		if (bpf_perf_event_read_value(&counter_events, first + i, &v, sizeof v))
			continue;
		r->value[i] = v.counter;
		r->counted |= 1u << i;
	}
}

static __always_inline void count_stretch(const struct thread_state *st, struct task_struct *task, u64 now)
{
	enum { NEEDED = 1 << FT_CYCLES | 1 << FT_INSTRUCTIONS };
	if (!counters)
		return;
	struct reading *last = &readings[bpf_get_smp_processor_id() & (FT_MAX_CPUS - 1)];
	struct reading this = {.t_ns = now, .tid = st->tid};
	this.switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	read_counters(&this);
	u32 counted = this.counted & last->counted;
	if (last->t_ns && last->tid == this.tid && last->switches == this.switches &&
	    (counted & NEEDED) == NEEDED) {
		struct ft_event_counters *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
		if (e) {
			e->type = FT_EVENT_COUNTERS;
			e->tid = st->tid;
			e->end_ns = now;
			e->duration_ns = now - last->t_ns;
			for (u32 i = 0; i < FT_CPU_COUNTERS; i++)
				e->value[i] = this.value[i] - last->value[i];
			e->counted = counted;
			e->cpu = (u16)bpf_get_smp_processor_id();
			e->counters = counters;
			bpf_ringbuf_submit(e, ring_flags());
		} else {
			drop(FT_DROP_SLOT_SAMPLE);
		}
	}
	*last = this;
}

#endif
