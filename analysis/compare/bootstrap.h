// SPDX-License-Identifier: MIT
// What one pair of runs can say of itself: how far its differences would scatter if other seconds of the same
// runs had been seen. A circular block bootstrap, since seconds that follow each other are alike. How other
// runs would have come out it can't know, so nothing is decided by it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sample.h"
#include "statistics.h"

namespace forktail::analysis::compare
{

constexpr size_t kQuantiles = 5;
constexpr std::array<double, kQuantiles> kQuantilePoints = {50, 90, 99, 99.9, 99.99};

struct PairIntervals {
	std::array<Interval, kQuantiles> log_ratio; // of B's percentile to A's
	Interval rate_log_ratio;
	std::array<Interval, kCauses> request_seconds; // B's less A's
	std::array<Interval, kCauses> episodes;	       // likewise, how many
	std::string why;			       // what can't be known, and why; "" if all is
};

// By `draws` draws from each run, the same each time for the same seed.
PairIntervals BootstrapPair(const RunSample &a, const RunSample &b, uint64_t seed, size_t draws = 2000);

} // namespace forktail::analysis::compare
