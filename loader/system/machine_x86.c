/* SPDX-License-Identifier: MIT */
/* x86-64. Its local interrupts have vectors and tracepoints of their own (irq_vectors). */
#include <elf.h>
#include <ucontext.h>

#include "loader/system.h"

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16 }; /* DWARF's numbers (System V ABI) */

static const struct machine_interrupt interrupts[] = {
    {"local_timer_entry", "timer interrupts count as on-CPU time of the server"},
    {"reschedule_entry", "reschedule interrupts from other CPUs count as on-CPU time of the server"},
    {"call_function_entry",
     "calls from other CPUs to several CPUs (TLB shootdowns) count as on-CPU time of the server"},
    {"call_function_single_entry",
     "calls from other CPUs to one CPU (TLB shootdowns, wakeups) count as on-CPU time of the server"},
};

const struct machine machine = {
    .name = "x86_64",
    .call_prefix = "__x64_sys_",
    .cpu_line = "model name",
    .elf = EM_X86_64,
    .address_bits = ~0ull,
    .stack_register = RSP,
    .instruction_register = RIP,
    .saved_registers = {RBP, RBX, R12, R12 + 1, R12 + 2, R12 + 3},
    .interrupts = interrupts,
    .interrupt_count = sizeof interrupts / sizeof *interrupts,
};

void machine_set_result(void *ucontext, long result)
{
	((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RAX] = result;
}
