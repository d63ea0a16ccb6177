// SPDX-License-Identifier: MIT
// What the latency chart draws: slow requests as points, all others as counts in a grid of time and latency,
// and those around episodes as points too.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/output/explain.h"
#include "clock.h"

namespace forktail
{

constexpr int kBinsPerDecade = 20; // 12 % of latency a bin

struct PointLimits {
	size_t points = 100'000;
	size_t cells = 100'000;
	size_t near = 40'000;
	uint32_t columns = 4096; // of time at most; halved until the cells fit
};

struct ReportPoints {
	// By time. Shares are of the request's latency, 255 is all of it; cause2's is 0 if there is one cause
	// only.
	// Causes lie between `since` and the request's end.
	std::vector<uint32_t> start, since;
	std::vector<float> latency_ns;
	std::vector<uint8_t> cause, share, cause2, share2, op;
	size_t slow = 0; // in all; the ones not among the points are in the grid

	// Cells that hold a request, by column, then bin. Bin b begins at 10^((first_bin + b) /
	// kBinsPerDecade) ns.
	uint32_t columns = 1;
	int first_bin = 0;
	std::vector<uint16_t> cell_column;
	std::vector<uint8_t> cell_bin;
	std::vector<uint32_t> cell_count;

	// Around episodes, where a reader zooms in until the grid is too coarse: every near_stride-th request
	// that is not slow, by itself. Ordered by time.
	std::vector<uint32_t> near_start;
	std::vector<float> near_latency_ns;
	size_t near_stride = 1;
};

ReportPoints CollectPoints(const Explanation &explanation, const ReportClock &clock,
			   const PointLimits &limits = {});

} // namespace forktail
