// SPDX-License-Identifier: MIT
// Names of the processes on the path of requests.
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
	std::string address; // "" if unknown
	// The thread, if several threads of the process are on the path: "io_thd_1", "mc-worker 4325" (with
	// the id if several have the name), "main thread". Else "".
	std::string thread;
	uint32_t tid = 0;
	std::string host = {}; // only if the run has several hosts
	// "redis-server 127.0.0.1:6380 on redis-a"; without an address "redis-server 4321"; ", io_thd_1"
	// after it.
	std::string text() const;
};

// The role of a hop: "proxy" (there are servers behind it), "instance", or, in a process with several threads
// on the path, "thread".
const char *RoleOf(const HopRow &row, const HopName &name);

// `hop` is as in blame.h: an index into timelines. These are those of run.servers and run.behind, then of
// further threads. Without a request log (`from_iterations`) they are those of all threads with an event
// loop.
HopName HopNameOf(const Run &run, const std::vector<Timeline> &timelines, uint16_t hop, bool from_iterations);

} // namespace forktail::analysis
