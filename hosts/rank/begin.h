// SPDX-License-Identifier: MIT
// How ranks come to one instant: who is of the same version, who can do its part, when it begins. MPI is over
// when this is: while load runs, nobody calls it.
#pragma once

#include <string>

namespace forktail::hosts
{

// Rank 0: asks all others, and decides. The exit status.
int Lead(const std::string &plan_path, int ranks);
// A host's rank: does its part of the run that is called `token`, to the end. The exit status.
int Follow(const std::string &token, const std::string &host);

} // namespace forktail::hosts
