// SPDX-License-Identifier: MIT
// Requests that went through a proxy: the time of each, hop by hop.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "blamed_requests.h"
#include "context.h"
#include "head_of_line.h"
#include "hop_shares.h"

namespace forktail::analysis
{

// Per worker: the time of one request, and what is reused for the next one.
struct ProxyScratch {
	HopTimes times;
	HopTimes own; // of another request on the path
	HeadOfLine head_of_line;
};

// Finds the paths from servers to servers behind them; servers are known.
void FindWays(const std::vector<Timeline> &timelines, Context *context);
// Stores the paths that requests of the window took.
void NoteWays(Context *context);
// Builds their routes from the current timelines.
void BuildRoutes(Context *context);
// Finds for each request of the window the one ahead of it on its connection.
void FindInFront(Context *context);
// Sums up request i in scratch->times, which is overwritten.
void SumHops(const Context &context, const ProxyPath &path, size_t i, ProxyScratch *scratch);
// The requests to blame: those of threshold_ns or more, and those that would still take floor_ns or more
// without one of the stalls.
struct Matter {
	uint64_t threshold_ns;
	StallTimes floor_ns;

	uint64_t least_ns() const
	{
		return std::min(threshold_ns, *std::min_element(floor_ns.begin(), floor_ns.end()));
	}
};
// Blames the request if it is one of those.
void BlameProxyRequest(const Context &context, const ProxyPath &path, size_t i, const Matter &matter,
		       ProxyScratch *scratch, Sheet *sheet);

} // namespace forktail::analysis
