// SPDX-License-Identifier: MIT
// The start of a run: ranks check their versions, prepare, and agree on the start time. MPI ends here: no
// rank calls it while load runs.
#pragma once

#include <string>

namespace forktail::hosts
{

// Rank 0: coordinates all other ranks. Returns the exit status.
int Lead(const std::string &plan_path, int ranks);
// A host's rank: does its part of run `token` to the end. Returns the exit status.
int Follow(const std::string &token, const std::string &host);

} // namespace forktail::hosts
