/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps and settings shared by the other files of this directory. `bpftool gen object` links them. */
#include "program.h"
#include "state.h"

const volatile bool has_task_storage = false;
const volatile bool has_prev_state_arg = false;
const volatile bool has_block_queue_arg = false;
const volatile bool has_task_pt_regs = false;
const volatile bool has_scheduler_waits = false;
const volatile __u32 page_bytes = 4096;
const volatile __u64 min_span_ns = 20000;
const volatile __u64 sample_stack_ns = 500000;
const volatile __u32 fast_period = 16;
const volatile __u64 ring_wake_bytes = 1 << 21;
const volatile __u32 pid_ns = 0;
const volatile bool with_client = false;
const volatile bool exact = false;
const volatile bool hard_interrupts = false;

struct states_map states SEC(".maps");
struct states_hash_map states_hash SEC(".maps");
struct targets_map targets SEC(".maps");
struct ring_map ring SEC(".maps");
struct cpu_chunks_map cpu_chunks SEC(".maps");

struct cpu_state cpus[FT_MAX_CPUS];
__u64 drops[FT_DROP_SLOTS];
__u64 program_runs[FT_MAX_CPUS][PROGRAM_ROW];
volatile __u64 closing_ns;
volatile __u64 open_ns;
volatile __u32 opening;
volatile __u32 cpus_came;
volatile __u32 quota_in_force;
volatile __u32 softirqs_timed, softirqs_sampled;
struct ft_kernel_code_range kernel_code[FT_KERNEL_CODES];

char gpl[] SEC("license") = "GPL";
