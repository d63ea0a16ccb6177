// SPDX-License-Identifier: MIT
// What a recording's run.json says of how it was made. explain and report read it, and people;
// docs/reference/lab-and-scenarios.md has its keys.
#pragma once

#include <string>

#include "forks.h"

namespace forktail::lab
{

struct RecordedRun {
	std::string step;
	std::vector<std::string> commands; // beside the servers', in the order of their start
	const Forks *forks = nullptr;
	long started_unix = 0;
};

// False: *error is one sentence.
bool WriteRunJson(const PointRun &run, const RecordedRun &recorded, const std::string &path,
		  std::string *error);

} // namespace forktail::lab
