/* SPDX-License-Identifier: MIT */
/* arm64. Its timer and the interrupts between CPUs are interrupts like those of devices, so they have no
 * tracepoints of their own. Programs may sign addresses in their upper bits (pointer authentication): Linux
 * gives programs addresses of 48 bits, unless they ask for more. */
#include <elf.h>
#include <ucontext.h>

#include "loader/system.h"

enum { X19 = 19, SP = 31 }; /* DWARF's numbers (AAPCS64) */

const struct machine machine = {
    .name = "aarch64",
    .call_prefix = "__arm64_sys_",
    .cpu_line = "CPU part",
    .elf = EM_AARCH64,
    .address_bits = (1ull << 48) - 1,
    .stack_register = SP,
    .instruction_register = -1,
    .saved_registers = {X19, X19 + 1, X19 + 2, X19 + 3, X19 + 4, X19 + 5, X19 + 6, X19 + 7, X19 + 8, X19 + 9,
			X19 + 10, X19 + 11},
};

void machine_set_result(void *ucontext, long result)
{
	((ucontext_t *)ucontext)->uc_mcontext.regs[0] = (unsigned long long)result;
}
