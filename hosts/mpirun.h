// SPDX-License-Identifier: MIT
// The command line of mpirun: the ranks, and options that keep Open MPI from disturbing the measurement.
#pragma once

#include <string>
#include <vector>

#include "plan.h"

namespace forktail::hosts
{

struct MpiRun {
	std::string mpirun, rank;	  // the programs' paths
	std::string plan, run, token;	  // absolute paths, and the id of the run on its hosts
	std::string hostfile;		  // "": none
	std::vector<std::string> options; // the user's, after the plan's
};

// `mode` is "run" or "gather"; `hosts` are rank 1, 2, ...
std::vector<std::string> MpiCommand(const MpiRun &mpi, const Plan &plan, const std::string &mode,
				    const std::vector<const PlanHost *> &hosts);

} // namespace forktail::hosts
