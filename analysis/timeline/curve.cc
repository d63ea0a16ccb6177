// SPDX-License-Identifier: MIT
// Sums as doubles: for an hour, 3.6e12 ns, a double still has a thousandth of a nanosecond.
#include "curve.h"

namespace forktail::analysis
{

namespace
{

void Add(Cause cause, double ns, Usage *u)
{
	if (IsStall(cause))
		u->stall += ns;
	else if (cause == Cause::ServerBusy)
		u->busy += ns;
	else if (cause == Cause::Idle)
		u->idle += ns;
	else if (cause == Cause::Network)
		u->socket += ns;
}

} // namespace

Curve BuildCurve(const Timeline &t)
{
	Curve c;
	c.timeline = &t;
	if (t.empty())
		return c;
	c.before.resize(t.pieces.size());
	Usage sum;
	for (size_t i = 0; i + 1 < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		double ns = static_cast<double>(t.pieces[i + 1].start_ns - p.start_ns);
		if (p.mix == kNoMix) {
			Add(p.cause, ns, &sum);
		} else {
			const Mix &mix = t.mixes[p.mix];
			double part = ns / static_cast<double>(mix.total_ns);
			for (uint32_t k = 0; k < mix.part_count; k++) {
				const MixPart &m = t.mix_parts[mix.first_part + k];
				Add(m.cause, part * static_cast<double>(m.ns), &sum);
			}
		}
		c.before[i + 1] = sum;
	}
	return c;
}

} // namespace forktail::analysis
