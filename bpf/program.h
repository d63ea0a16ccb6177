/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that run in a thread and change its account. They rely on not being preempted: a switch in the
 * middle would charge the account a second time. Programs of functions may be preempted where the kernel may;
 * those of tracepoints too since Linux 7.0. So the object is built twice: with FT_DISABLE_PREEMPTION for
 * kernels that have bpf_preempt_disable (6.10), without it for others, some of which (5.13 to 5.15) refuse an
 * object that only mentions it. Programs of interrupts, of switches and of perf events are never preempted;
 * those that change no account (of disks, of requests) may be.
 *
 * Until a program has returned, the kernel skips it on the same CPU, and counts that. One that was preempted
 * at its end, with preemption enabled again, may so hide another thread's event. */
#ifndef FORKTAIL_BPF_PROGRAM_H
#define FORKTAIL_BPF_PROGRAM_H

#include "bpf/events.h"
#include "bpf/programs.h"
#include "types.h" /* first: libbpf's headers need the integer types */

#include <bpf/bpf_tracing.h>

/* The runs of an object's programs: a row per CPU, which only that CPU writes. The kernel does not nest a
 * program on a CPU. */
#ifndef PROGRAM_ROW
#define PROGRAM_ROW FT_PROGRAM_ROW
#endif
extern __u64 program_runs[FT_MAX_CPUS][PROGRAM_ROW] __attribute__((aligned(64)));

/* The first statement of each program. */
#define COUNT_RUN(name) (program_runs[bpf_get_smp_processor_id() & (FT_MAX_CPUS - 1)][FT_RUNS_##name]++)

/* As BPF_PROG, and counts its runs. */
#define COUNTED_PROG(name, args...)                                                                          \
	name(unsigned long long *ctx);                                                                       \
	static __always_inline int counted_##name(unsigned long long *ctx);                                  \
	int name(unsigned long long *ctx)                                                                    \
	{                                                                                                    \
		COUNT_RUN(name);                                                                             \
		return counted_##name(ctx);                                                                  \
	}                                                                                                    \
	static __always_inline int BPF_PROG(counted_##name, ##args)

#ifdef FT_DISABLE_PREEMPTION

extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/* The program `name`, which calls body_NAME on this CPU, unless `skipped`. */
#define UNPREEMPTED_BEGIN(name, skipped)                                                                     \
	name(unsigned long long *ctx);                                                                       \
	static __always_inline int body_##name(unsigned long long *ctx);                                     \
	int name(unsigned long long *ctx)                                                                    \
	{                                                                                                    \
		COUNT_RUN(name);                                                                             \
		if (skipped)                                                                                 \
			return 0;                                                                            \
		bpf_preempt_disable();                                                                       \
		int result = body_##name(ctx);                                                               \
		bpf_preempt_enable();                                                                        \
		return result;                                                                               \
	}
/* As COUNTED_PROG. */
#define UNPREEMPTED_PROG(name, args...)                                                                      \
	UNPREEMPTED_BEGIN(name, false)                                                                       \
	static __always_inline int BPF_PROG(body_##name, ##args)
/* The same for programs that do nothing in other threads, where they are as short as possible: in threads
 * that are not targets, as far as this CPU knows; in those without an account, also if their switch was not
 * seen. */
#define TARGETS_PROG(name, args...)                                                                          \
	UNPREEMPTED_BEGIN(name, !this_cpu()->target)                                                         \
	static __always_inline int BPF_PROG(body_##name, ##args)
#define ACCOUNTS_PROG(name, args...)                                                                         \
	UNPREEMPTED_BEGIN(name, !account_of(bpf_get_current_task_btf()))                                     \
	static __always_inline int BPF_PROG(body_##name, ##args)

#else

#define UNPREEMPTED_PROG(name, args...) COUNTED_PROG(name, ##args)
#define TARGETS_PROG(name, args...) COUNTED_PROG(name, ##args)
#define ACCOUNTS_PROG(name, args...) COUNTED_PROG(name, ##args)

#endif
#endif
