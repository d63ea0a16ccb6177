/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between machines, so that no other file has to know one: the registers of user mode and which
 * of them hold a system call's number and arguments, the reasons of a page fault, names of the kernel's
 * functions, system calls that only some machines have. The build chooses the machine (cmake/machine.cmake).
 * Each machine's header defines the same names:
 *
 *   struct pt_regs___user        the registers that the programs read
 *   CALL_NUMBER, CALL_ARG0 ...   its members: of a system call, until it returns
 *   USER_IP, USER_SP             its members: instruction, stack
 *   USER_REGS_BYTES              its size in the kernel, where bpf_task_pt_regs() is missing
 *   KERNEL_STACK_BYTES           of a thread's kernel stack
 *   PAGE_BYTES                   of a page
 *   CALL_FUNCTION(name)          the kernel function of a system call
 *   save_registers()             the registers that a function preserves, FT_SAVED_REGISTERS of them
 *   was_in_user_mode()           what a sample or an event interrupted
 *   fault_reason()               enum fault_reason of the kernel's code
 *   __NR_...                     the system calls of calls.h. Those that a machine lacks are negative */
#ifndef FORKTAIL_BPF_MACHINE_H
#define FORKTAIL_BPF_MACHINE_H

/* Part of recordings (docs/reference/recording-format.md). The bits are those of x86-64's error code. */
enum fault_reason { FAULT_PRESENT = 1, FAULT_WRITE = 2, FAULT_USER = 4 };

#if defined(__TARGET_ARCH_x86)
#include "machine_x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "machine_arm64.h"
#else
#error "no header for this machine (CONTRIBUTING.md)"
#endif

#endif
