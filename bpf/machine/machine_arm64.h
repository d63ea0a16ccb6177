/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64, for machine.h. Pages have 4, 16 or 64 kB. It has only the newer of two system calls for one purpose:
 * the C library calls epoll_pwait for epoll_wait(). */
#ifndef FORKTAIL_BPF_MACHINE_ARM64_H
#define FORKTAIL_BPF_MACHINE_ARM64_H

#include "types.h"

#include <asm/unistd.h>

extern const volatile u32 page_bytes; /* set by the loader */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___user {
	unsigned long long regs[31];
	unsigned long long sp, pc;
	unsigned long long orig_x0; /* regs[0] becomes the result */
	int syscallno;
};

#pragma clang attribute pop

#define CALL_NUMBER syscallno
#define CALL_ARG0 orig_x0
#define CALL_ARG1 regs[1]
#define CALL_ARG3 regs[3]
#define CALL_ARG5 regs[5]
#define USER_IP pc
#define USER_SP sp

/* The size differs between kernels. */
#define USER_REGS_BYTES bpf_core_type_size(struct pt_regs___user)
#define KERNEL_STACK_BYTES (page_bytes > 16384 ? page_bytes : 16384)
#define PAGE_BYTES ((u64)page_bytes)

#define CALL_FUNCTION(name) "__arm64_sys_" #name

/* x19 to x30: what a function preserves, its frame pointer and its return address. */
static __always_inline void save_registers(u64 *saved, struct pt_regs___user *regs)
{
	bpf_core_read(saved, FT_SAVED_REGISTERS * sizeof *saved, &regs->regs[19]);
}

/* The exception level in the saved state: 0. */
static __always_inline bool was_in_user_mode(struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.pstate & 0xf) == 0;
}

/* The exception syndrome of an abort (Arm Architecture Reference Manual, ESR_EL1). A cache instruction looks
 * like a write. Of the status codes, "access flag" and "permission" mean that there was a page. */
static __always_inline u64 fault_reason(u64 esr)
{
	enum { CLASS_SHIFT = 26, CLASS_MASK = 0x3f, INSTRUCTION_USER = 0x20, DATA_USER = 0x24 };
	enum { WRITE = 1 << 6, CACHE = 1 << 8, STATUS_KIND = 0x3c, ACCESS_FLAG = 0x08, PERMISSION = 0x0c };
	u64 class = esr >> CLASS_SHIFT & CLASS_MASK, kind = esr & STATUS_KIND, reason = 0;
	if (class == INSTRUCTION_USER || class == DATA_USER)
		reason |= FAULT_USER;
	if (class != INSTRUCTION_USER && esr & WRITE && !(esr & CACHE))
		reason |= FAULT_WRITE;
	if (kind == ACCESS_FLAG || kind == PERMISSION)
		reason |= FAULT_PRESENT;
	return reason;
}

/* Numbers that no call has, each another one, because they stand in a switch. */
enum {
	__NR_epoll_wait = -101,
	__NR_poll = -102,
	__NR_select = -103,
	__NR_pause = -104,
	__NR_fork = -105,
	__NR_vfork = -106,
	__NR_open = -107,
	__NR_stat = -108,
	__NR_lstat = -109,
	__NR_rename = -110,
	__NR_unlink = -111,
	__NR_getdents = -112,
};

#endif
