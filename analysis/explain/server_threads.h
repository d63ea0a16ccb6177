// SPDX-License-Identifier: MIT
// What a Redis or Valkey server reports of its threads (INFO, every second), beside the kernel's account of
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "cpu_times.h"

namespace forktail::analysis
{

// A counter is empty if the server does not report it.
struct ServerThread {
	std::string name;		   // "main", "io_thd_1"
	std::optional<uint64_t> cpu_ns;	   // its CPU time (used_cpu_sys_main_thread and ..user..)
	std::optional<uint64_t> active_ns; // without polling for work (used_active_time_..., Valkey 9.1)
	std::optional<uint64_t> connections, reads,
	    writes;		    // Redis 8: the most at a time; requests and replies
	int thread = -1;	    // index into Run::threads; -1: not recorded
	uint64_t kernel_cpu_ns = 0; // in the same time
};

struct ServerThreads {
	TimeSpan period = {0, 0}; // between two answers to INFO, while the main thread was recorded
	std::vector<ServerThread> threads;
};

// The threads of the only server, without kernel_cpu_ns. `process`: its id, 0 if it was not recorded. No
// threads for a server that reports nothing of them or was restarted.
ServerThreads ServerThreadsOf(const Run &run, uint32_t process);
void AddCpuTimes(const CpuTimes &cpu, ServerThreads *all);

} // namespace forktail::analysis
