// SPDX-License-Identifier: MIT
// Children that a server forks when it is asked to, BGSAVE's and BGREWRITEAOF's, and what it says of them
// itself: how long the fork took and how much was copied on write. Beside a recording that is what its forks
// are held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "point_run.h"

namespace forktail::lab
{

struct ForkJob; // a command and what INFO calls its child

struct ForkReport {
	const ForkJob *job = nullptr;
	std::string kind;					    // "bgsave"
	uint64_t asked_ns = 0, t_ns = 0;			    // the fork lies between them
	uint64_t fork_us = 0, used_memory = 0, used_memory_rss = 0; // INFO's, right after t_ns
	uint64_t ended_ns = 0;					    // 0: it was not seen to end
	std::string cow_field;					    // "rdb_last_cow_size"
	uint64_t cow_bytes = 0;					    // once it has ended
};

// Those of one load, one after the other.
struct Forks {
	std::vector<ForkReport> reports;
	Instance *server = nullptr; // of the last report, while its child runs
	uint64_t looked_ns = 0;
};

// Asks for the next one; none may run. False: *error is one sentence, as below.
bool AskForFork(PointRun *run, const Action &action, Forks *forks, std::string *error);
// Sees now and then whether the child has ended.
bool LookAtFork(PointRun *run, Forks *forks, std::string *error);
// The child may outlive the load. What it copied is known when it has ended, and only then.
bool AwaitFork(PointRun *run, Forks *forks, std::string *error);

} // namespace forktail::lab
