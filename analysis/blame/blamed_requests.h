// SPDX-License-Identifier: MIT
// Where exact blame writes: a request's parts, then the request. Each worker has a sheet of its own, so that
// none waits for another; blame.cc puts them together in the order of requests.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "blame.h"

namespace forktail::analysis
{

struct Sheet {
	std::vector<SlowRequest> requests;
	std::vector<Part> parts;
};

// Adds a part of the request that is being blamed, if it has any time.
void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet);
// Adds what it was spent on at one hop, and queued for there.
void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      Sheet *sheet);
// Closes a request whose parts are the sheet's from r->first_part on.
void AddRequest(SlowRequest *r, Sheet *sheet);

} // namespace forktail::analysis
