// SPDX-License-Identifier: MIT
// Children of BGSAVE and BGREWRITEAOF, and the server's own report about them: duration of the fork and
// copy-on-write memory. It is stored with a recording to check the recorded forks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "point_run.h"

namespace forktail::lab
{

struct ForkJob; // a command and the INFO fields of its child

struct ForkReport {
	const ForkJob *job = nullptr;
	std::string kind;					    // "bgsave"
	uint64_t asked_ns = 0, t_ns = 0;			    // the fork is between them
	uint64_t fork_us = 0, used_memory = 0, used_memory_rss = 0; // INFO's, right after t_ns
	uint64_t ended_ns = 0;					    // 0: its end was not seen
	std::string cow_field;					    // "rdb_last_cow_size"
	uint64_t cow_bytes = 0;					    // after its end
};

// The forks of one load.
struct Forks {
	std::vector<ForkReport> reports;
	Instance *server = nullptr; // of the last report, while its child runs
	uint64_t looked_ns = 0;
};

// Starts the next fork; none may run. False: *error is one sentence, as below.
bool AskForFork(PointRun *run, const Action &action, Forks *forks, std::string *error);
// Checks periodically whether the child has ended.
bool LookAtFork(PointRun *run, Forks *forks, std::string *error);
// Waits for the child, which may outlive the load: the copied memory is known only after its end.
bool AwaitFork(PointRun *run, Forks *forks, std::string *error);

} // namespace forktail::lab
