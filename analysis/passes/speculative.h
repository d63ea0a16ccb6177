// SPDX-License-Identifier: MIT
// Exact blame in the same pass as the first look. Separately it would take a further pass over the log and
// over what threads did. Which requests matter is known only after all were examined. Until then the limit is
// estimated from those examined, somewhat too low, and requests that turn out not to matter are dropped. If
// the estimate was too high, or takes in too many requests, the extra pass is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/blame/blamed_requests.h"
#include "first_look.h"
#include "percentile.h"
#include "slowest.h"

namespace forktail::analysis
{

class SpeculativeBlame
{
public:
	SpeculativeBlame() = default;
	// Stores at most this many slow requests and twice as many others, of requests with these latencies.
	SpeculativeBlame(size_t most, const LogHistogram &latencies, uint64_t threshold_ns);
	// False: it was given up.
	bool Active() const { return active_; }
	void GiveUp();
	// The latency from which requests must be blamed now, by the requests examined so far.
	uint64_t From(const std::vector<FirstLook> &workers);
	// Takes the blamed requests in the order of the log, and empties the sheets.
	void Take(std::vector<Sheet> *sheets);
	// Called after all were examined: those of least_ns or more matter, and errors from the threshold up.
	// True: *kept got all of them.
	bool PassTo(uint64_t least_ns, SlowestRequests *kept);
	// For SlowestRequests::Again: passes once more what percentiles need of each request.
	void PassAgainTo(SlowestRequests *kept) const;

private:
	// For a request that is not slow, only its latency without each cause is needed.
	struct Fast {
		uint64_t latency_ns;
		uint16_t part_count;
	};
	// What a worker blamed in one step.
	struct Stretch {
		Sheet slow;
		std::vector<Fast> fast;
		std::vector<uint64_t>
		    fast_parts; // per request in sequence: a cause, with its time in the upper bits
	};
	static void AddFast(const SlowRequest &request, const Part *parts, Stretch *to);
	static void Shrink(Stretch *stretch);
	static void Restore(const Stretch &stretch, Sheet *sheet);
	void Leave(uint64_t least_ns);

	bool active_ = true;
	size_t most_ = 0, slow_ = 0;
	size_t fast_ = 0;
	uint64_t threshold_ns_ = 0, likely_ns_ = 0, from_ns_ = 0, highest_ns_ = 0;
	std::vector<Stretch> stretches_;
};

} // namespace forktail::analysis
