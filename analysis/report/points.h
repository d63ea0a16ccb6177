// SPDX-License-Identifier: MIT
// The content of the latency chart: slow requests as points, all others as counts in a grid of time and
// latency, and those around episodes as points too.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/explain/explanation.h"
#include "clock.h"

namespace forktail::analysis::report
{

constexpr int kBinsPerDecade = 20; // a bin is 12 % of latency wide

struct PointLimits {
	size_t points = 100'000;
	size_t cells = 100'000;
	size_t near = 40'000;
	size_t parts = 250'000;
	uint32_t columns = 4096; // maximum columns of time; halved until the cells fit
};

struct ReportPoints {
	// By time. A request's causes are between `since` and its end; `cause` is the one with most of its
	// time.
	std::vector<uint32_t> start, since;
	std::vector<float> latency_ns;
	std::vector<uint8_t> cause, op;
	size_t slow = 0; // total; those that are not points are in the grid

	// Further data of each, for search and for the request panel. `number` is that in the request log;
	// `connection` is an index into `connections`, `hop` one into `hops`, `behind` as in SlowRequest. An
	// iteration has only its hop.
	std::vector<uint32_t> number, sent, connection;
	std::vector<uint16_t> hop; // kNoHop: unknown
	std::vector<uint8_t> status, behind;
	// How long the answer waited unread, and the network time in each direction. NaN: unknown for this
	// request. Empty: unknown in this run.
	std::vector<float> unread_ns, way_ns, way_back_ns;
	// Of a kernel log: from the request's arrival at the server until it was read, and until the reply
	// was written, with NaN as above; sizes. Empty: no kernel log.
	std::vector<float> read_after_ns, written_after_ns;
	std::vector<uint32_t> request_bytes, answer_bytes;
	// The parts of all points in sequence, largest first: at most `parts_each` per point.
	std::vector<uint8_t> part_count, part_cause;
	std::vector<uint16_t> part_hop; // likewise
	std::vector<float> part_direct_ns, part_queued_ns;
	size_t parts_each = 0;
	std::vector<uint32_t> connections; // index into Run::connections, each once
	std::vector<uint16_t> hops;	   // as in blame.h, each once

	// Cells with requests, by column, then bin. Bin b begins at 10^((first_bin + b) / kBinsPerDecade) ns.
	uint32_t columns = 1;
	int first_bin = 0;
	std::vector<uint16_t> cell_column;
	std::vector<uint8_t> cell_bin;
	std::vector<uint32_t> cell_count;

	// Around episodes, where the grid is too coarse after zooming in: every near_stride-th request that
	// is not slow, by time.
	std::vector<uint32_t> near_start;
	std::vector<float> near_latency_ns;
	size_t near_stride = 1;
};

// The time near episodes: each episode, extended by its length and at least 5 ms. By time, not overlapping.
using TimeRange = std::pair<uint64_t, uint64_t>;
std::vector<TimeRange> Surroundings(const std::vector<Episode> &episodes);
bool IsInside(const std::vector<TimeRange> &intervals, uint64_t t_ns);

ReportPoints CollectPoints(const Explanation &explanation, const ReportClock &clock,
			   const PointLimits &limits = {});

} // namespace forktail::analysis::report
