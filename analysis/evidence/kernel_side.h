// SPDX-License-Identifier: MIT
// What the kernel did for a thread, told from the system call that a sample was in: "kernel/send".
//
// Without the callers all that a short turn's sample knows of the server is libc's `write`; the call, and
// what kind of file it was on, still say that an answer was being sent. With a kernel stack the stack
// decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::analysis
{

// The kernel's side of a sample.
struct KernelSide {
	bool in_kernel = false;
	std::string call; // the system call's name; "" for none, or not known
	uint8_t file = 0; // enum ft_sample_file
};

struct KernelWork {
	std::string activity; // "" if nothing is known
	std::string where;    // the kernel's function that says so, or the call: "tcp_sendmsg", "write()"
};

// `stack`: the kernel's functions, innermost first.
KernelWork KernelWorkOf(const KernelSide &side, const std::vector<std::string> &stack);

} // namespace forktail::analysis
