// SPDX-License-Identifier: MIT
// A run on several hosts, from the plan to the directory in which all of it is gathered.
//
// mpirun is started twice: for the run, and to gather what it left on the hosts. In between nothing has to be
// remembered, so that whatever ended the first (a rank that was killed, Ctrl-C, a host that is gone), the
// second finds what there is.
#pragma once

#include <string>

#include "mpirun.h"

namespace forktail::hosts
{

struct HostsOptions {
	Plan plan;
	MpiRun mpi; // all but the token
};

// Reads the plan, finds the programs, makes the run's directory. False: *error is one sentence, *status the
// exit status.
bool PrepareHosts(HostsOptions *options, std::string *error, int *status);
// What would run where, for --check.
std::string DescribePlan(const Plan &plan);
// The exit status: 0 all is well, 1 something died or a host's part is missing, 3 it could not begin.
int RunHosts(HostsOptions options);

} // namespace forktail::hosts
