// SPDX-License-Identifier: MIT
// Limits as they are asked for: on the command line, and in a file of a project (TOML):
//
//   slow = "1ms"                     # what is slow, as --slow; optional
//   limits = [
//     "p99.9 < 5ms",
//     { limit = "fork.max < 20ms", name = "snapshots don't stall" },
//   ]
#pragma once

#include <string>
#include <vector>

#include "common/limits/limits.h"

namespace forktail::analysis::gate
{

struct AskedLimit {
	std::string text; // "p99.9 < 5ms"
	std::string name; // "": no name
};

struct AskedLimits {
	std::vector<AskedLimit> asked;
	std::vector<limit> limits; // likewise
	std::string slow;	   // "": not in the file
};

// Adds a limit. A bare "no worse than BASE ..." becomes one limit each on p50, p99 and p99.9. False: *error
// is one sentence. If it has to hold, a limit such as "p99 > 5ms" is refused.
bool AddLimit(const AskedLimit &asked, limit_reading reading, AskedLimits *limits, std::string *error);
// Adds a file's limits. False: *error is one sentence with the place.
bool ReadLimitsFile(const std::string &path, AskedLimits *limits, std::string *error);

} // namespace forktail::analysis::gate
