// SPDX-License-Identifier: MIT
// Collects the files of all hosts in one directory after their programs have ended: through MPI in pieces, or
// by a rename on the same file system. A second mpirun does it, so it works however the first one ended.
#pragma once

#include <string>

namespace forktail::hosts
{

// Rank 0: stores the files of the others in RUN/hosts/NAME. Returns the exit status.
int Gather(const std::string &plan_path, const std::string &token, const std::string &run, int ranks);
// A host's rank: sends its files, and removes them when rank 0 has stored them.
int HandOver(const std::string &token, const std::string &host);

} // namespace forktail::hosts
