// SPDX-License-Identifier: MIT
// Exact blame along with the first look, which would else take a further pass over the log and over what
// threads did. Which requests matter is known once all were looked at; before that it is guessed from those
// that were, somewhat too low, and those that turn out not to matter go. A guess that was too high, or takes
// in more than are kept, costs the pass that it was to save.
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

class Ahead
{
public:
	Ahead() = default;
	// At most so many slow ones and twice as many others, of requests with these latencies.
	Ahead(size_t most, const LogHistogram &latencies, uint64_t threshold_ns);
	// False: it was given up.
	bool Goes() const { return goes_; }
	void GiveUp();
	// From which latency on requests are to be blamed now, as far as has been looked.
	uint64_t From(const std::vector<FirstLook> &workers);
	// What was blamed, in the order of the log; leaves the sheets empty.
	void Take(std::vector<Sheet> *sheets);
	// All were looked at, and those of least_ns or more matter, errors from the threshold on. True: *kept
	// has been given all of them.
	bool Give(uint64_t least_ns, Kept *kept);
	// For Kept::Again: once more what percentiles take of each.
	void GiveAgain(Kept *kept) const;

private:
	// Of one that is not slow nobody wants to know but what it would be without a cause.
	struct Fast {
		uint64_t latency_ns;
		uint16_t part_count;
	};
	// What a worker blamed at a time.
	struct Stretch {
		Sheet slow;
		std::vector<Fast> fast;
		std::vector<uint64_t> fast_parts; // of one after the other: a cause, and its time above that
	};
	static void AddFast(const SlowRequest &request, const Part *parts, Stretch *to);
	static void Shrink(Stretch *stretch);
	static void Restore(const Stretch &stretch, Sheet *sheet);
	void Leave(uint64_t least_ns);

	bool goes_ = true;
	size_t most_ = 0, slow_ = 0;
	size_t fast_ = 0;
	uint64_t threshold_ns_ = 0, likely_ns_ = 0, from_ns_ = 0, highest_ns_ = 0;
	std::vector<Stretch> stretches_;
};

} // namespace forktail::analysis
