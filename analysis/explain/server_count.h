// SPDX-License-Identifier: MIT
// What a Redis or Valkey server counted itself, to compare with the kernel's account of its thread: the load
// generator's observer writes the numbers of INFO every second.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/run/run.h"

namespace forktail::analysis
{

struct ServerCount {
	uint64_t ns = 0;	 // between the first answer to INFO and the last
	uint64_t cycles = 0;	 // of its event loop (eventloop_cycles)
	uint64_t loop_ns = 0;	 // from the end of polling until the next (eventloop_duration_sum)
	uint64_t command_ns = 0; // of that in commands (eventloop_duration_cmd_sum)
};

// Nothing for a server that does not count (before Redis 7.2), with fewer than two answers, and if it was
// restarted meanwhile.
std::optional<ServerCount> ServerCountOf(const Run &run);

} // namespace forktail::analysis
