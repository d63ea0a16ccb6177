// SPDX-License-Identifier: MIT
// The first look at all requests of a run. It finds those that need exact blame.
#pragma once

#include <array>
#include <memory>

#include "analysis/blame/context.h"
#include "analysis/blame/hop_shares.h"
#include "percentile.h"
#include "whatif.h"

namespace forktail::analysis
{

// Lower bounds of requests' latencies without some stall. For a direct request only the sum of its stalls is
// known here, which is a bound for each. Through a proxy, where exact blame is expensive, each stall is
// known.
struct Bounds {
	LogHistogram calm; // latencies without all stalls that are not in `without`
	std::array<std::unique_ptr<LogHistogram>, static_cast<size_t>(kStallCauses)> without;
	bool any = false;   // `without` has values
	size_t sampled = 0; // this many requests represent all; 0: all were examined

	// Adds `requests` requests like this one.
	void Add(double latency_ns, double stalls_ns, uint64_t requests);
	void Add(double latency_ns, const StallTimes &stalls_ns, uint64_t requests);
	void Merge(const Bounds &other);
	// By stall: without it, no request below this latency is among the slowest percent.
	StallTimes SlowestPercent() const;

private:
	LogHistogram *Of(size_t cause);
};

struct FirstLook {
	Bounds bounds;
	WithoutHistograms without;

	void Merge(const FirstLook &other);
};

// The latency from which requests must be examined. Without a cause no request has a higher rank than with
// it, so requests below all needed percentiles (p99 and above) need no look. That latency is estimated from
// the requests examined so far.
class Floor
{
public:
	// For a run with these latencies.
	explicit Floor(const LogHistogram &latencies);
	// The latency from which to examine requests now.
	uint64_t Of(const std::vector<FirstLook> &workers);
	// All requests that matter were examined. False: the estimate was too high, and the look must be
	// repeated.
	bool Covers(const FirstLook &look) const;

private:
	uint64_t likely_ns_, floor_ns_ = 0, highest_ns_ = 0;
	uint64_t next_count_ = 1 << 18; // when to estimate again
};

// Examines requests [first, last) of the current window of the log, and adds to the workers' results.
// Requests faster than floor_ns are only counted. Through a proxy, where a look is more expensive, one
// request of `step` represents all.
void LookAt(const Context &context, size_t first, size_t last, uint64_t step, uint64_t floor_ns,
	    std::vector<FirstLook> *workers);
// How many of `count` requests one represents there.
uint64_t ProxyStep(uint64_t count);

} // namespace forktail::analysis
