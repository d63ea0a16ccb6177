// SPDX-License-Identifier: MIT
// A run on several hosts, from the plan to the collected run directory.
//
// mpirun is started twice: for the run, and to collect the files from the hosts. There is no state in
// between, so the second works however the first ended (a killed rank, Ctrl-C, a lost host).
#pragma once

#include <string>

#include "mpirun.h"

namespace forktail::hosts
{

struct HostsOptions {
	Plan plan;
	MpiRun mpi; // all but the token
};

// Reads the plan, finds the programs, creates the run directory. False: *error is one sentence, *status the
// exit status.
bool PrepareHosts(HostsOptions *options, std::string *error, int *status);
// The programs of each host, for --check.
std::string DescribePlan(const Plan &plan);
// Returns the exit status: 0 success, 1 a program died or files are missing, 3 the run could not start.
int RunHosts(HostsOptions options);

} // namespace forktail::hosts
