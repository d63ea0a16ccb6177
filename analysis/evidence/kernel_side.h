// SPDX-License-Identifier: MIT
// Classifies the kernel's work for a thread by the system call of a sample: "kernel/send".
//
// A sample without callers shows only libc's `write` of the server. The system call and the kind of its file
// still show that the server was sending a reply. If the sample has a kernel stack, the stack decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::analysis
{

// The kernel part of a sample.
struct KernelSide {
	bool in_kernel = false;
	std::string call; // the system call's name; "" for none, or unknown
	uint8_t file = 0; // enum ft_sample_file
};

struct KernelWork {
	std::string activity; // "" if unknown
	std::string where;    // the kernel function that identifies it, or the call: "tcp_sendmsg", "write()"
};

// `stack`: the kernel's functions, innermost first.
KernelWork KernelWorkOf(const KernelSide &side, const std::vector<std::string> &stack);

} // namespace forktail::analysis
