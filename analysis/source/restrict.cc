// SPDX-License-Identifier: MIT
// Restricts a run to a part: blocks without anything of the part are dropped before they are read.
#include <algorithm>

#include "source.h"

namespace forktail::analysis
{

namespace
{

// What threads did: what the part's first requests may have queued for, and what crosses its end.
constexpr uint64_t kBeforeNs = 10'000'000'000, kAfterNs = 1'000'000'000;

} // namespace

TimeSpan RunSource::Span(Run *run) const
{
	if (whole_)
		return *whole_;
	TimeSpan span = {UINT64_MAX, 0};
	for (const LogBlock &b : log_) {
		span.since_ns = std::min(span.since_ns, b.place.end_ns ? b.place.start_ns : UINT64_MAX);
		span.until_ns = std::max(span.until_ns, b.place.end_ns);
	}
	if (has_log_ && span.until_ns)
		return span;
	FindExtent(run);
	span = {run->start_ns, run->end_ns};
	for (const ServerBlock &b : servers_)
		span.until_ns = std::max(span.until_ns, b.place.end_ns);
	return span;
}

void RunSource::Restrict(const TimeSpan &part)
{
	part_ = part;
	auto outside = [](const auto &block, uint64_t from_ns, uint64_t to_ns) {
		return block.place.end_ns && (block.place.end_ns < from_ns || block.place.start_ns >= to_ns);
	};
	const uint64_t before_ns = BeforePart();
	for (const LogBlock &b : log_)
		if (b.place.end_ns && !outside(b, before_ns, part.since_ns))
			log_before_.push_back(b);
	std::erase_if(log_, [&](const LogBlock &b) { return outside(b, part.since_ns, part.until_ns); });
	uint64_t last_ns = part.until_ns;
	for (const LogBlock &b : log_)
		last_ns = std::max(last_ns, b.place.end_ns);
	std::erase_if(servers_, [&](const ServerBlock &b) {
		return outside(b, before_ns,
			       last_ns > UINT64_MAX - kAfterNs ? UINT64_MAX : last_ns + kAfterNs);
	});
}

std::unique_ptr<LogReader> RunSource::OpenLogBefore(size_t window, Run *run)
{
	if (log_before_.empty())
		return nullptr;
	return OpenJoined(log_before_, window, TimeSpan{BeforePart(), part_.since_ns}, run);
}

uint64_t RunSource::BeforePart() const
{
	return part_.since_ns - std::min(part_.since_ns, kBeforeNs);
}

void RunSource::Bound(uint64_t from_ns, uint64_t to_ns)
{
	for (Stretch &s : stretches_)
		s = {std::max(s.from_ns, from_ns), std::min(s.to_ns, to_ns)};
	std::erase_if(stretches_, [](const Stretch &s) { return s.from_ns >= s.to_ns; });
}

} // namespace forktail::analysis
