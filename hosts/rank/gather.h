// SPDX-License-Identifier: MIT
// The files of all hosts come into one directory, once all of a host's programs have ended: through MPI in
// pieces, or, if both are on one file system, by being renamed. A second mpirun does it, which finds what a
// first left, however that ended: no state of a run that lost a rank is needed.
#pragma once

#include <string>

namespace forktail::hosts
{

// Rank 0: takes what the others have into RUN/hosts/NAME. The exit status.
int Gather(const std::string &plan_path, const std::string &token, const std::string &run, int ranks);
// A host's rank: hands over its files, and removes them here once rank 0 has them.
int HandOver(const std::string &token, const std::string &host);

} // namespace forktail::hosts
