/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The programs that count their runs. The kernel's statistics count them too, but cost too much to be always
 * on (loader/cost.c). Missing are programs that run on the recorder's behalf (iterators, adopt_current):
 * their time is the recorder's. The most frequent ones come first, so that their counts share cache lines. */
#ifndef FORKTAIL_BPF_PROGRAMS_H
#define FORKTAIL_BPF_PROGRAMS_H

#include <linux/types.h>

#define FT_PAIR(X, first, second, name) X(first##name) X(second##name)
#define FT_INTERRUPT(X, name) X(name##_entry) X(name##_exit)
#define FT_CALL(X, name) FT_PAIR(X, enter_, exit_, name) FT_PAIR(X, into_, out_of_, name)

/* clang-format off */
#define FT_PROGRAMS(X) \
	FT_INTERRUPT(X, softirq) \
	X(sched_switch) X(sched_waking) X(sched_wakeup) \
	FT_INTERRUPT(X, local_timer) FT_INTERRUPT(X, irq_handler) \
	FT_INTERRUPT(X, call_function_single) FT_INTERRUPT(X, reschedule) \
	FT_INTERRUPT(X, call_function) FT_INTERRUPT(X, irq_work) \
	X(cpu_sample) X(mm_page_alloc) X(page_fault_user) X(page_fault_kernel) \
	X(fault_begin) X(fault_begin_event) X(fault_end_minor) X(fault_end_minor_old) \
	X(fault_end_by_effect) X(fault_end_by_effect_old) X(fault_end_major) \
	X(sched_migrate_task) X(sched_wakeup_new) X(sched_process_fork) X(sched_process_exec) X(sched_process_exit) \
	X(block_rq_issue) X(block_rq_complete) X(writeback_dirty_folio) X(writeback_dirty_page) \
	X(cpuhp_enter) X(direct_reclaim_begin) X(direct_reclaim_end) \
	X(memcg_reclaim_begin) X(memcg_reclaim_end) X(compaction_begin) X(compaction_end) \
	FT_CALL(X, fsync) FT_CALL(X, fdatasync) FT_CALL(X, msync) FT_CALL(X, sync_file_range) \
	FT_CALL(X, clone) FT_CALL(X, clone3) FT_CALL(X, fork) FT_CALL(X, vfork) \
	FT_CALL(X, epoll_wait) FT_CALL(X, epoll_pwait) FT_CALL(X, epoll_pwait2) \
	FT_PAIR(X, exit_, out_of_, accept) FT_PAIR(X, exit_, out_of_, accept4) \
	FT_PAIR(X, enter_, into_, close)

#define FT_REQUEST_PROGRAMS(X) \
	X(request_arrives) X(request_read) X(request_written) X(request_leaves) \
	X(request_arrives_function) X(request_read_tcp) X(request_read_tcp_old) \
	X(request_read_unix) X(request_written_tcp) X(request_written_unix) X(client_connects)

#define FT_TCP_PROGRAMS(X) \
	X(tcp_retransmits) X(tcp_reset_received) X(tcp_reset_sent) X(packet_dropped)

#define FT_READER_PROGRAMS(X) X(socket_read) X(socket_closes)

#define FT_PROBE_PROGRAMS(X) X(probe_enters) X(probe_returns) X(probe_reached)
/* clang-format on */

/* For the loader's tables of names. */
#define FT_NAME_OF(name) #name,

/* Indices into an object's counts. A CPU's row of them is whole cache lines. */
#define FT_RUNS_OF(name) FT_RUNS_##name,
#define FT_ROW_OF(count) ((count) + 7) & ~7
enum { FT_PROGRAMS(FT_RUNS_OF) FT_PROGRAM_COUNT, FT_PROGRAM_ROW = FT_ROW_OF(FT_PROGRAM_COUNT) };
enum {
	FT_REQUEST_PROGRAMS(FT_RUNS_OF) FT_REQUEST_PROGRAM_COUNT,
	FT_REQUEST_PROGRAM_ROW = FT_ROW_OF(FT_REQUEST_PROGRAM_COUNT)
};
enum {
	FT_READER_PROGRAMS(FT_RUNS_OF) FT_READER_PROGRAM_COUNT,
	FT_READER_PROGRAM_ROW = FT_ROW_OF(FT_READER_PROGRAM_COUNT)
};
enum {
	FT_PROBE_PROGRAMS(FT_RUNS_OF) FT_PROBE_PROGRAM_COUNT,
	FT_PROBE_PROGRAM_ROW = FT_ROW_OF(FT_PROBE_PROGRAM_COUNT)
};
enum {
	FT_TCP_PROGRAMS(FT_RUNS_OF) FT_TCP_PROGRAM_COUNT,
	FT_TCP_PROGRAM_ROW = FT_ROW_OF(FT_TCP_PROGRAM_COUNT)
};

#endif
