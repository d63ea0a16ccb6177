// SPDX-License-Identifier: MIT
// The output of exact blame: a request's parts, then the request. Each worker has its own sheet, so that none
// waits for another. blame.cc joins the sheets in the order of requests.
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

// Adds a part of the current request, if it has any time.
void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet);
// Adds the current request's direct and queued time at one hop.
void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      Sheet *sheet);
// Ends a request whose parts are the sheet's from r->first_part on.
void AddRequest(SlowRequest *r, Sheet *sheet);

} // namespace forktail::analysis
