// SPDX-License-Identifier: MIT
// Swap for an experiment alone, in compressed memory or in a file, so that what the host has beside it is no
// part of what is measured. The keeper takes it back, however the lab ends.
#pragma once

#include <cstdint>
#include <string>

#include "session.h"

namespace forktail::lab
{

struct Swap {
	std::string device; // "/dev/zram3", or the file
};

// kind: zram, or file (in `directory`, which must lie on a disk). Used before any other swap.
bool MakeSwap(Session *session, const std::string &kind, uint64_t bytes, const std::string &directory,
	      Swap *swap, std::string *error);
// Takes as long as reading back what living processes have there.
bool RemoveSwap(Session *session, Swap *swap, std::string *error);

} // namespace forktail::lab
