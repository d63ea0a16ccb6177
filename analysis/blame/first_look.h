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
	size_t sampled = 0; // so many stand for all; 0: all were looked at

	// Of `requests` requests like this one.
	void Add(double latency_ns, double stalls_ns, uint64_t requests);
	void Add(double latency_ns, const StallTimes &stalls_ns, uint64_t requests);
	void Merge(Bounds *other);
	// By stall: no request that takes less with that one taken out is among the slowest percent then.
	StallTimes SlowestPercent() const;

private:
	LogHistogram *Of(size_t cause);
};

struct FirstLook {
	Bounds bounds;
	WithoutHistograms without;
};
FirstLook LookAtAll(const Context &context);

} // namespace forktail
