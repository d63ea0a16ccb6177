// SPDX-License-Identifier: MIT
// See flows.h.
#include "flows.h"

#include <algorithm>

namespace forktail::analysis::exports
{

Cause CauseOfSpan(const Run &run, const Waits &waits, const Thread &thread, const ft_span &span)
{
	if (span.off_cpu && span.runnable_ns > span.blocked_ns)
		return WaitCauseOf(run, span);
	return span.off_cpu ? waits.CauseOf(span, thread) : CauseOfOwner(span.owner);
}

std::vector<uint64_t> Flows::Of(const Explanation &e, size_t slow) const
{
	const SlowRequest &r = e.blame.slow[slow];
	std::vector<uint64_t> ids;
	for (size_t i = 0; i < std::min<size_t>(kMost, r.part_count); i++) {
		const Part &part = e.blame.parts[r.first_part + i];
		if (part.hop != kNoHop && IsStall(part.cause))
			ids.push_back(slow * kMost + i + 1);
	}
	return ids;
}

uint32_t Flows::SpanOf(const Explanation &e, const Waits &waits, const SlowRequest &r, const Part &part,
		       uint64_t from_ns, uint64_t to_ns) const
{
	const uint32_t thread = e.timelines[part.hop].thread;
	if (thread >= e.run.threads.size())
		return kNoSpan;
	const Thread &t = e.run.threads[thread];
	const ft_span *first = e.run.spans.data() + t.first_span, *end = first + t.span_count;
	// A span that began long before may overlap the request's time, but not one before the stretch.
	uint64_t most = 0;
	uint32_t found = kNoSpan;
	const auto reach = reach_ns_.begin() + static_cast<ptrdiff_t>(t.first_span);
	const ft_span *reaching =
	    first +
	    (std::upper_bound(reach, reach + static_cast<ptrdiff_t>(t.span_count), r.since_ns) - reach);
	for (const ft_span *s = std::max(
		 reaching,
		 std::partition_point(first, end, [&](const ft_span &x) { return x.start_ns < from_ns; }));
	     s != end && s->start_ns < std::min(to_ns, r.end_ns()); ++s) {
		const uint64_t begin = std::max(s->start_ns, r.since_ns);
		const uint64_t stop = std::min(s->start_ns + s->duration_ns, r.end_ns());
		if (CauseOfSpan(e.run, waits, t, *s) == part.cause && stop > begin && stop - begin > most) {
			most = stop - begin;
			found = static_cast<uint32_t>(s - e.run.spans.data());
		}
	}
	return found;
}

void Flows::FindReach(const Explanation &e)
{
	reach_ns_.resize(e.run.spans.size());
	for (const Thread &t : e.run.threads) {
		uint64_t latest = 0;
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
			latest = std::max(latest, e.run.spans[i].start_ns + e.run.spans[i].duration_ns);
			reach_ns_[i] = latest;
		}
	}
}

void Flows::Find(const Explanation &e, uint64_t from_ns, uint64_t to_ns)
{
	const Waits waits(e.run);
	to_.clear();
	FindReach(e);
	found_.resize(e.blame.slow.size());
	for (size_t i = 0; i < e.blame.slow.size(); i++) {
		const SlowRequest &r = e.blame.slow[i];
		if (r.end_ns() <= from_ns || r.since_ns >= to_ns)
			continue;
		for (uint64_t id : Of(e, i)) {
			const size_t part = (id - 1) % kMost;
			if (found_[i] >> part & 1)
				continue;
			const uint32_t span =
			    SpanOf(e, waits, r, e.blame.parts[r.first_part + part], from_ns, to_ns);
			if (span == kNoSpan)
				continue;
			found_[i] |= static_cast<uint8_t>(1u << part);
			to_[span].push_back(id);
		}
	}
}

const std::vector<uint64_t> &Flows::To(uint32_t span) const
{
	static const std::vector<uint64_t> none;
	const auto found = to_.find(span);
	return found == to_.end() ? none : found->second;
}

} // namespace forktail::analysis::exports
