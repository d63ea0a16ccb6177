// SPDX-License-Identifier: MIT
// A timeline reduced to five running sums, for looking at every request of a run in a few nanoseconds each.
// What it says is within a few nanoseconds of the exact account, which only requests that matter get.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/timeline.h"

namespace forktail
{

// Nanoseconds of an interval, by kind; what is left of it is not known.
struct Usage {
	double stall = 0; // all stalls
	double hard = 0;  // of them those in spans, not in tallies
	double busy = 0;
	double idle = 0;
	double socket = 0; // blocked on one

	Usage &operator+=(const Usage &u)
	{
		stall += u.stall;
		hard += u.hard;
		busy += u.busy;
		idle += u.idle;
		socket += u.socket;
		return *this;
	}
};

struct Curve {
	struct Point {
		uint64_t start_ns;
		Usage before; // the piece
		Usage rate;   // per ns inside it
	};
	const Timeline *timeline = nullptr;
	std::vector<Point> points; // one per piece, and the sentinel's
};

Curve BuildCurve(const Timeline &timeline);

inline Usage UsageUntil(const Curve &c, uint64_t t_ns)
{
	if (c.points.empty() || t_ns <= c.points.front().start_ns)
		return {};
	if (t_ns >= c.points.back().start_ns)
		return c.points.back().before;
	const Curve::Point &p = c.points[PieceAt(*c.timeline, t_ns)];
	double in = static_cast<double>(t_ns - p.start_ns);
	return {p.before.stall + in * p.rate.stall, p.before.hard + in * p.rate.hard,
		p.before.busy + in * p.rate.busy, p.before.idle + in * p.rate.idle,
		p.before.socket + in * p.rate.socket};
}

inline Usage UsageOf(const Curve &c, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns >= to_ns)
		return {};
	Usage a = UsageUntil(c, from_ns), b = UsageUntil(c, to_ns);
	return {b.stall - a.stall, b.hard - a.hard, b.busy - a.busy, b.idle - a.idle, b.socket - a.socket};
}

} // namespace forktail
