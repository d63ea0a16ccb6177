// SPDX-License-Identifier: MIT
// Sums as doubles: an hour is 3.6e12 ns, which leaves a double a thousandth of a nanosecond.
#include "analysis/curve.h"

namespace forktail
{

namespace
{

void AddShare(Cause cause, double share, bool in_span, Usage *u)
{
	if (IsStall(cause)) {
		u->stall += share;
		if (in_span)
			u->hard += share;
	} else if (cause == Cause::ServerBusy) {
		u->busy += share;
	} else if (cause == Cause::Idle) {
		u->idle += share;
	} else if (cause == Cause::Network) {
		u->socket += share;
	}
}

} // namespace

Curve BuildCurve(const Timeline &t)
{
	Curve c;
	c.timeline = &t;
	if (t.empty())
		return c;
	c.points.resize(t.pieces.size());
	Usage sum;
	for (size_t i = 0; i < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		Usage rate;
		if (i + 1 < t.pieces.size()) {
			if (p.mix == kNoMix) {
				AddShare(p.cause, 1, p.span != kNoSpan, &rate);
			} else {
				const Mix &mix = t.mixes[p.mix];
				for (uint32_t k = 0; k < mix.part_count; k++) {
					const MixPart &part = t.mix_parts[mix.first_part + k];
					AddShare(part.cause,
						 static_cast<double>(part.ns) /
						     static_cast<double>(mix.total_ns),
						 false, &rate);
				}
			}
		}
		c.points[i] = {p.start_ns, sum, rate};
		if (i + 1 < t.pieces.size()) {
			double ns = static_cast<double>(t.pieces[i + 1].start_ns - p.start_ns);
			sum.stall += ns * rate.stall;
			sum.hard += ns * rate.hard;
			sum.busy += ns * rate.busy;
			sum.idle += ns * rate.idle;
			sum.socket += ns * rate.socket;
		}
	}
	return c;
}

} // namespace forktail
