/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64, for machine.h. */
#ifndef FORKTAIL_BPF_MACHINE_X86_H
#define FORKTAIL_BPF_MACHINE_X86_H

#include "types.h"

#include <asm/unistd_64.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___user {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r10, r9;
	unsigned long si, di;
	unsigned long orig_ax;
	unsigned long ip, sp;
};

#pragma clang attribute pop

#define CALL_NUMBER orig_ax
#define CALL_ARG0 di
#define CALL_ARG1 si
#define CALL_ARG3 r10
#define CALL_ARG5 r9
#define USER_IP ip
#define USER_SP sp

#define USER_REGS_BYTES 168
#define KERNEL_STACK_BYTES 16384 /* without KASAN, which no server's kernel has */
#define PAGE_BYTES 4096ull

#define CALL_FUNCTION(name) "__x64_sys_" #name

/* In the order of loader/system/machine_x86.c. */
static __always_inline void save_registers(u64 *saved, struct pt_regs___user *regs)
{
	saved[0] = BPF_CORE_READ(regs, bp);
	saved[1] = BPF_CORE_READ(regs, bx);
	saved[2] = BPF_CORE_READ(regs, r12);
	saved[3] = BPF_CORE_READ(regs, r13);
	saved[4] = BPF_CORE_READ(regs, r14);
	saved[5] = BPF_CORE_READ(regs, r15);
}

/* The privilege level in the code segment's selector. */
static __always_inline bool was_in_user_mode(struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) != 0;
}

/* The error code. */
static __always_inline u64 fault_reason(u64 code)
{
	return code;
}

#endif
