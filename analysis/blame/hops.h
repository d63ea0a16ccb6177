// SPDX-License-Identifier: MIT
// What the processes on the way of requests are called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "analysis/timeline/timeline.h"
#include "blame.h"

namespace forktail::analysis
{

struct HopName {
	std::string comm;
	uint32_t pid = 0;
	std::string address; // "" if not known
	// Where more than one thread of the process is on the way: which, "io_thd_1", "mc-worker 4325" (the
	// id where several have the name), "main thread"; else "".
	std::string thread;
	uint32_t tid = 0;
	std::string host = {}; // of several hosts in a run
	// "redis-server 127.0.0.1:6380 on redis-a"; without an address "redis-server 4321"; ", io_thd_1"
	// after it.
	std::string text() const;
};

// What part a hop plays: "proxy" (servers lie behind it), "instance", or, of a process with several threads
// on the way, "thread".
const char *RoleOf(const HopRow &row, const HopName &name);

// `hop` as in blame.h: an index into timelines, which are those of run.servers and run.behind, then of
// further threads, or, without a request log (`from_iterations`), of any threads with an event loop.
HopName HopNameOf(const Run &run, const std::vector<Timeline> &timelines, uint16_t hop, bool from_iterations);

} // namespace forktail::analysis
