// SPDX-License-Identifier: MIT
// One host's part of a run: its directory, its programs, and how they end. Independent of MPI.
//
// Recorders run from before the first request until after the last. Each program closes its own recording: it
// gets SIGTERM if this process dies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/process/child.h"
#include "jobs.h"

namespace forktail::hosts
{

struct RunningJob {
	Job job;
	common::Child child;
	bool ready = false; // it records or compares clocks
};

struct HostRun {
	std::string host, programs, directory;
	std::vector<Job> loads;
	std::vector<std::unique_ptr<RunningJob>> running;
	int lock = -1; // locked by every program until all have ended
};

// The directory of a host's files of run `token`.
std::string DirectoryOf(const Plan &plan, const std::string &token, const std::string &host);
constexpr char kLockFile[] = "running"; // in there

// Creates the directory and checks the programs and their versions. False: *error is one sentence.
bool PrepareHostRun(const Plan &plan, const PlanHost &host, const std::string &token, HostRun *host_run,
		    std::string *error);
// Starts recorders and clocks and waits until they are ready. False as above.
bool StartRecorders(HostRun *host_run, const Plan &plan, const PlanHost &host, std::string *error);
// Starts the loads, which send from `start_ns` (CLOCK_REALTIME), and reports events until "end" or the end of
// standard input, a signal, or `deadline_ns` (CLOCK_MONOTONIC). Then it ends all programs.
void RunLoads(HostRun *host_run, uint64_t start_ns, uint64_t deadline_ns);
// Ends all programs.
void EndHostRun(HostRun *host_run);
// "; its last messages: one line / another", of the lines in child.last; "" without any.
std::string LastWords(const common::Child &child);

} // namespace forktail::hosts
