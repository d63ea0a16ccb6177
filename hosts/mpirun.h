// SPDX-License-Identifier: MIT
// The command line of mpirun: which rank is what, and what Open MPI must not do while somebody measures.
#pragma once

#include <string>
#include <vector>

#include "plan.h"

namespace forktail::hosts
{

struct MpiRun {
	std::string mpirun, rank;	  // the programs' paths
	std::string plan, run, token;	  // absolute paths, and what the run is called on its hosts
	std::string hostfile;		  // "": none
	std::vector<std::string> options; // the user's, after the plan's
};

// `mode` is "run" or "gather"; `hosts` those that take part, in their order: rank 1, 2, ...
std::vector<std::string> MpiCommand(const MpiRun &mpi, const Plan &plan, const std::string &mode,
				    const std::vector<const PlanHost *> &hosts);

} // namespace forktail::hosts
