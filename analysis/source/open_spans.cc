// SPDX-License-Identifier: MIT
// Whether a later span ended an open one. A thread that was off the CPU, or ran undisturbed, no longer does
// so if there is any later record. A frame has ended if a span that ended later is not deeper than it.
#include "open_spans.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

uint64_t EndOf(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// Off the CPU, or running without any other event: the next event has ended it.
bool IsStill(const ft_span &open)
{
	return open.off_cpu || open.owner == FT_OWN_CODE;
}

} // namespace

void OpenSpans::Add(const ft_span &span)
{
	OfThread &t = by_tid_[span.tid];
	const uint64_t seen_ns = EndOf(span); // the instant of the scan, for all its spans
	if (seen_ns < t.seen_ns)
		return;
	if (seen_ns > t.seen_ns)
		t.open.clear();
	t.seen_ns = seen_ns;
	// A segment repeats what the last scan before it found.
	auto same = [&](const Open &o) {
		return o.span.start_ns == span.start_ns && o.span.owner == span.owner &&
		       o.span.depth == span.depth && o.span.off_cpu == span.off_cpu;
	};
	if (std::none_of(t.open.begin(), t.open.end(), same))
		t.open.push_back({span, false});
}

void OpenSpans::Note(const ft_span &span)
{
	auto found = by_tid_.find(span.tid);
	if (found == by_tid_.end())
		return;
	const bool iteration = span.owner == FT_ITERATION;
	for (Open &o : found->second.open) {
		if (EndOf(span) <= EndOf(o.span))
			continue;
		if (iteration || o.span.owner == FT_ITERATION)
			o.ended |= iteration && o.span.owner == FT_ITERATION;
		else
			o.ended |= IsStill(o.span) || span.depth <= o.span.depth;
	}
}

void OpenSpans::Note(const ft_tally &tally)
{
	auto found = by_tid_.find(tally.tid);
	if (found == by_tid_.end())
		return;
	for (Open &o : found->second.open)
		o.ended |= IsStill(o.span) && tally.end_ns > EndOf(o.span);
}

std::vector<ft_span> OpenSpans::StillOpen() const
{
	std::vector<ft_span> standing;
	for (const auto &[tid, t] : by_tid_)
		for (const Open &o : t.open)
			if (!o.ended)
				standing.push_back(o.span);
	std::sort(standing.begin(), standing.end(), [](const ft_span &a, const ft_span &b) {
		return a.tid != b.tid ? a.tid < b.tid : a.start_ns < b.start_ns;
	});
	return standing;
}

} // namespace forktail::analysis
