// SPDX-License-Identifier: MIT
// Writes run.json of a recording: how it was made, for explain and report.
// docs/reference/lab-and-scenarios.md describes its keys.
#pragma once

#include <string>

#include "forks.h"

namespace forktail::lab
{

struct RecordedRun {
	std::string step;
	std::vector<std::string> commands; // other than the servers', in the order of their start
	const Forks *forks = nullptr;
	long started_unix = 0;
};

// False: *error is one sentence.
bool WriteRunJson(const PointRun &run, const RecordedRun &recorded, const std::string &path,
		  std::string *error);

} // namespace forktail::lab
