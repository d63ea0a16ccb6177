// SPDX-License-Identifier: MIT
// What one pair of runs can show: how far its differences would scatter with other seconds of the same runs.
// A circular block bootstrap, because successive seconds are alike. It cannot know how other runs would
// differ, so it gives no verdict.
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
	std::array<Interval, kCauses> episodes;	       // likewise, the count
	std::string why;			       // what is unknown, and why; "" if all is known
};

// Uses `draws` draws from each run, the same for the same seed.
PairIntervals BootstrapPair(const RunSample &a, const RunSample &b, uint64_t seed, size_t draws = 2000);

} // namespace forktail::analysis::compare
