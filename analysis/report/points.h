// SPDX-License-Identifier: MIT
// What the latency chart draws: slow requests as points, all others as counts in a grid of time and latency,
// and those around episodes as points too.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/explain/explanation.h"
#include "clock.h"

namespace forktail::analysis::report
{

constexpr int kBinsPerDecade = 20; // 12 % of latency a bin

struct PointLimits {
	size_t points = 100'000;
	size_t cells = 100'000;
	size_t near = 40'000;
	size_t parts = 250'000;
	uint32_t columns = 4096; // of time at most; halved until the cells fit
};

struct ReportPoints {
	// By time. Causes lie between `since` and the request's end; `cause` is the one with most of its
	// time.
	std::vector<uint32_t> start, since;
	std::vector<float> latency_ns;
	std::vector<uint8_t> cause, op;
	size_t slow = 0; // in all; the ones not among the points are in the grid

	// What else is known of each, to find it by and to tell it in full. `number` in the request log;
	// `connection` is an index into `connections`, `hop` one into `hops`, `behind` as in SlowRequest.
	// An iteration has none of these but its hop.
	std::vector<uint32_t> number, sent, connection;
	std::vector<uint16_t> hop; // kNoHop: not known
	std::vector<uint8_t> status, behind;
	// Of some run they are known: how long the answer lay unread, and what the way there and back took.
	// NaN: not of this one. Empty: of none.
	std::vector<float> unread_ns, way_ns, way_back_ns;
	// Its parts, one after the other, largest first: the largest `parts_each` of each at most.
	std::vector<uint8_t> part_count, part_cause;
	std::vector<uint16_t> part_hop; // likewise
	std::vector<float> part_direct_ns, part_queued_ns;
	size_t parts_each = 0;
	std::vector<uint32_t> connections; // index into Run::connections, each once
	std::vector<uint16_t> hops;	   // as in blame.h, each once

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

// The time episodes are looked at closely: themselves and as much again around them, at least 5 ms. By time,
// not overlapping.
using TimeRange = std::pair<uint64_t, uint64_t>;
std::vector<TimeRange> Surroundings(const std::vector<Episode> &episodes);
bool IsInside(const std::vector<TimeRange> &intervals, uint64_t t_ns);

ReportPoints CollectPoints(const Explanation &explanation, const ReportClock &clock,
			   const PointLimits &limits = {});

} // namespace forktail::analysis::report
