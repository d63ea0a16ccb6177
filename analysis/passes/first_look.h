// SPDX-License-Identifier: MIT
// The look at all requests of a run, which finds those that are worth to be blamed exactly.
#pragma once

#include <array>
#include <memory>

#include "analysis/blame/context.h"
#include "analysis/blame/hop_shares.h"
#include "percentile.h"
#include "whatif.h"

namespace forktail::analysis
{

// Lower bounds of what requests would be without some stall. Of one that was asked directly only all its
// stalls together are known here, which bounds each; through a proxy, where exact blame is dear, each by
// itself.
struct Bounds {
	LogHistogram calm; // without any stall that is not in `without`
	std::array<std::unique_ptr<LogHistogram>, static_cast<size_t>(kStallCauses)> without;
	bool any = false;   // of `without`
	size_t sampled = 0; // so many stand for all; 0: all were looked at

	// Of `requests` requests like this one.
	void Add(double latency_ns, double stalls_ns, uint64_t requests);
	void Add(double latency_ns, const StallTimes &stalls_ns, uint64_t requests);
	void Merge(const Bounds &other);
	// By stall: no request that takes less with that one taken out is among the slowest percent then.
	StallTimes SlowestPercent() const;

private:
	LogHistogram *Of(size_t cause);
};

struct FirstLook {
	Bounds bounds;
	WithoutHistograms without;

	void Merge(const FirstLook &other);
};

// How much of a run has to be looked at: a request is at no place higher without a cause than with it, so
// that those below all that is asked for, which is no percentile under p99, need no look. Where that is is
// guessed from what was looked at so far.
class Floor
{
public:
	// Of a run with these latencies.
	explicit Floor(const LogHistogram &latencies);
	// From which latency on to look now.
	uint64_t Of(const std::vector<FirstLook> &workers);
	// All of a run was looked at from there on. False: it was guessed too high, and has to be done anew.
	bool Held(const FirstLook &look) const;

private:
	uint64_t likely_ns_, floor_ns_ = 0, highest_ns_ = 0;
	uint64_t next_count_ = 1 << 18; // when to guess again
};

// Looks at requests [first, last) of the window of the log that is in memory, adding to those of the workers;
// those faster than floor_ns are just counted. Through a proxy, where a look costs more, one request of
// `step` stands for all.
void LookAt(const Context &context, size_t first, size_t last, uint64_t step, uint64_t floor_ns,
	    std::vector<FirstLook> *workers);
// How many of `count` requests one stands for there.
uint64_t StepThrough(uint64_t count);

} // namespace forktail::analysis
