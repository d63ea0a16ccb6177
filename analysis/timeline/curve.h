// SPDX-License-Identifier: MIT
// A timeline reduced to four running sums, to look at every request of a run in a few nanoseconds. Its
// results are within a few nanoseconds of the exact account, which only requests that matter get.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline.h"

namespace forktail::analysis
{

// Nanoseconds of an interval by kind; the rest is unknown.
struct Usage {
	double stall = 0;
	double busy = 0;
	double idle = 0;
	double socket = 0; // blocked on a socket
};

struct Curve {
	const Timeline *timeline = nullptr;
	std::vector<Usage> before; // per piece, the sentinel included: sums up to its start
};

Curve BuildCurve(const Timeline &timeline);

// The sums up to t_ns. *hint is the piece at which the last call ended: requests are almost in order, so it
// is usually that one or the next.
inline Usage UsageUntil(const Curve &c, uint64_t t_ns, uint32_t *hint)
{
	const std::vector<Piece> &pieces = c.timeline->pieces;
	if (c.before.empty() || t_ns <= pieces.front().start_ns)
		return {};
	if (t_ns >= pieces.back().start_ns)
		return c.before.back();
	uint32_t p = *hint;
	if (t_ns < pieces[p].start_ns || t_ns >= pieces[p + 1].start_ns) {
		if (p + 2 < pieces.size() && t_ns >= pieces[p + 1].start_ns && t_ns < pieces[p + 2].start_ns)
			p++;
		else
			p = PieceAt(*c.timeline, t_ns);
		*hint = p;
	}
	double part = static_cast<double>(t_ns - pieces[p].start_ns) /
		      static_cast<double>(pieces[p + 1].start_ns - pieces[p].start_ns);
	const Usage &a = c.before[p], &b = c.before[p + 1];
	return {a.stall + part * (b.stall - a.stall), a.busy + part * (b.busy - a.busy),
		a.idle + part * (b.idle - a.idle), a.socket + part * (b.socket - a.socket)};
}

inline Usage UsageOf(const Curve &c, uint64_t from_ns, uint64_t to_ns, uint32_t *hint)
{
	if (from_ns >= to_ns)
		return {};
	Usage a = UsageUntil(c, from_ns, hint), b = UsageUntil(c, to_ns, hint);
	return {b.stall - a.stall, b.busy - a.busy, b.idle - a.idle, b.socket - a.socket};
}

} // namespace forktail::analysis
