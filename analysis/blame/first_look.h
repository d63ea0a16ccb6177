// SPDX-License-Identifier: MIT
// The look at all requests of a run, which finds those that are worth to be blamed exactly.
#pragma once

#include <array>
#include <memory>

#include "context.h"
#include "percentile.h"
#include "spent.h"
#include "whatif.h"

namespace forktail
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

// Looks at requests [first, last) of the window of the log that is in memory, adding to those of the workers.
// Through a proxy, where a look costs more, one request of `step` stands for all.
void LookAt(const Context &context, size_t first, size_t last, uint64_t step,
	    std::vector<FirstLook> *workers);
// How many of `count` requests one stands for there.
uint64_t StepThrough(uint64_t count);

} // namespace forktail
