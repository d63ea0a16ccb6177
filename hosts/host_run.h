// SPDX-License-Identifier: MIT
// One host's part of a run: its directory of files, its programs, and how they end. It knows nothing of MPI.
//
// Recorders are there before the first request and until after the last; each program's recording is closed
// by the program itself, whoever dies first: it gets SIGTERM if we don't live any more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/process/child.h"
#include "jobs.h"

namespace forktail::hosts
{

struct Running {
	Job job;
	common::Child child;
	bool ready = false; // it has begun to record or to compare
};

struct Work {
	std::string host, programs, directory;
	std::vector<Job> loads;
	std::vector<std::unique_ptr<Running>> running;
	int lock = -1; // held by every program, so that it is free once all of them have ended
};

// Where a host keeps the files of the run that is called `token`.
std::string DirectoryOf(const Plan &plan, const std::string &token, const std::string &host);
constexpr char kLockFile[] = "running"; // in there

// Makes the directory and sees whether the programs are there and of our version. False: *error is one
// sentence.
bool PrepareWork(const Plan &plan, const PlanHost &host, const std::string &token, Work *work,
		 std::string *error);
// Starts what has to be there before the loads, and waits until it is ready. False as above.
bool StartRecorders(Work *work, const Plan &plan, const PlanHost &host, std::string *error);
// Starts the loads, which begin to send at `start_ns` of CLOCK_REALTIME, and tells what happens until all
// have ended and somebody says that the others have, too ("end" or the end of standard input, a signal), or
// until `deadline_ns` of CLOCK_MONOTONIC. All programs have ended then.
void RunLoads(Work *work, uint64_t start_ns, uint64_t deadline_ns);
// Ends all programs.
void EndWork(Work *work);
// "; it said: one line / another", of the lines that Remember noted; "" if there are none.
std::string LastWords(const common::Child &child);

} // namespace forktail::hosts
