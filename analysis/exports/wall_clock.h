// SPDX-License-Identifier: MIT
// The time of day at millions of instants, equal to RealtimeNs() (run.h). The readings of both clocks are
// sorted once, and the nearest one is cached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/run.h"

namespace forktail::analysis::exports
{

class WallClock
{
public:
	WallClock() = default;
	explicit WallClock(const Run &run)
	{
		std::vector<ft_clock> readings = run.clocks;
		std::stable_sort(readings.begin(), readings.end(), [](const ft_clock &a, const ft_clock &b) {
			return a.monotonic_ns < b.monotonic_ns;
		});
		for (const ft_clock &c : readings) {
			if (!spans_.empty()) // at equal distance the earlier one counts
				spans_.back().until_ns = last_ns_ + (c.monotonic_ns - last_ns_) / 2;
			spans_.push_back({UINT64_MAX, static_cast<int64_t>(c.realtime_ns - c.monotonic_ns)});
			last_ns_ = c.monotonic_ns;
		}
	}
	// ns since 1970, UTC; 0: unknown, also for times that no clock can have.
	int64_t At(uint64_t t_ns)
	{
		if (spans_.empty())
			return 0;
		if (t_ns > spans_[at_].until_ns || (at_ && t_ns <= spans_[at_ - 1].until_ns))
			at_ = static_cast<size_t>(
			    std::partition_point(spans_.begin(), spans_.end() - 1,
						 [&](const Span &s) { return s.until_ns < t_ns; }) -
			    spans_.begin());
		int64_t at = 0;
		const bool possible =
		    t_ns <= INT64_MAX &&
		    !__builtin_add_overflow(spans_[at_].offset_ns, static_cast<int64_t>(t_ns), &at);
		return possible && at > 0 ? at : 0;
	}

private:
	struct Span {
		uint64_t until_ns; // the last instant for which this reading is nearest
		int64_t offset_ns; // from CLOCK_MONOTONIC to the time of day
	};
	std::vector<Span> spans_;
	uint64_t last_ns_ = 0;
	size_t at_ = 0;
};

} // namespace forktail::analysis::exports
