// SPDX-License-Identifier: MIT
// Which files a run is made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"

namespace forktail::analysis
{

// A recording, and the host whose directory it lies in, as it is called there; "" if in none.
struct Found {
	std::string path, host;
	bool segment = false; // of the ring that lies there
};

// The recordings a path names, by name. Of a ring's segments those that may have something of the part that
// is asked for: *whole is then the time that the whole ring, or the request log beside it, lasts. False:
// *error says what is wrong with it.
bool FindRecordings(const std::string &path, const PartAsked &asked, std::vector<Found> *files,
		    std::optional<TimeSpan> *whole, Run *run, std::string *error);

} // namespace forktail::analysis
