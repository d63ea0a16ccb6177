// SPDX-License-Identifier: MIT
// Pieces are cut at the bounds of such intervals, and their sums are recomputed. The timeline of a thread
// that waits for no other, as in a server of one thread, is not changed.
#include "thread_waits.h"

#include <algorithm>

#include "locks.h"
#include "spins.h"

namespace forktail::analysis
{

void TakeForeign(const std::vector<Foreign> &intervals, Timeline *t)
{
	if (intervals.empty() || t->empty())
		return;
	std::vector<Piece> pieces;
	pieces.reserve(t->pieces.size() + 2 * intervals.size());
	size_t next = 0;
	for (size_t i = 0; i + 1 < t->pieces.size(); i++) {
		Piece piece = t->pieces[i];
		const uint64_t end_ns = t->pieces[i + 1].start_ns;
		while (piece.start_ns < end_ns) {
			while (next < intervals.size() && intervals[next].end_ns <= piece.start_ns)
				next++;
			if (next == intervals.size() || intervals[next].start_ns >= end_ns) {
				pieces.push_back(piece);
				break;
			}
			const Foreign &f = intervals[next];
			if (piece.start_ns < f.start_ns) {
				pieces.push_back(piece);
				piece.start_ns = f.start_ns;
			}
			pieces.push_back({piece.start_ns, piece.span, kNoMix, f.cause});
			piece.start_ns = std::min(end_ns, f.end_ns);
		}
	}
	pieces.push_back(t->pieces.back());
	t->pieces = std::move(pieces);
	t->foreign.insert(t->foreign.end(), intervals.begin(), intervals.end());
	std::sort(t->foreign.begin(), t->foreign.end(),
		  [](const Foreign &a, const Foreign &b) { return a.start_ns < b.start_ns; });
	IndexTimeline(t);
}

void ResolveOthers(ThreadTimelines *threads, Timeline *timeline)
{
	TakeForeign(FindSpins(threads, *timeline), timeline);
	TakeForeign(LockForeign(threads, *timeline), timeline);
}

} // namespace forktail::analysis
