// SPDX-License-Identifier: MIT
// Swap for one experiment, in compressed memory or in a file, so that the host's own swap does not affect the
// measurement. The keeper removes it, however the lab ends.
#pragma once

#include <cstdint>
#include <string>

#include "session.h"

namespace forktail::lab
{

struct Swap {
	std::string device; // "/dev/zram3", or the file
};

// kind: zram, or file (in `directory` on a disk). It is used before other swap.
bool MakeSwap(Session *session, const std::string &kind, uint64_t bytes, const std::string &directory,
	      Swap *swap, std::string *error);
// Takes as long as reading back the pages of running processes.
bool RemoveSwap(Session *session, Swap *swap, std::string *error);

} // namespace forktail::lab
