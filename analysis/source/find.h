// SPDX-License-Identifier: MIT
// Finds the files of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"

namespace forktail::analysis
{

// A recording, and the name of the host directory that contains it; "" if none.
struct Found {
	std::string path, host;
	bool segment = false; // it is a ring segment
};

// The recordings of a path, sorted by name. Of a ring only the segments that may overlap the requested part:
// *whole is then the extent of the ring, or of the request log next to it. False: *error is one sentence.
bool FindRecordings(const std::string &path, const PartAsked &asked, std::vector<Found> *files,
		    std::optional<TimeSpan> *whole, Run *run, std::string *error);

} // namespace forktail::analysis
