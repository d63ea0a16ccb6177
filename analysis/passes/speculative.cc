// SPDX-License-Identifier: MIT
// The estimate is where the slowest percent begins without any stall. Two values bound it well: where it
// began for the requests examined so far, and where it begins with all stalls, because most runs have few.
#include "speculative.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

// How far the estimate is below the begin of the slowest percent in the first kFirst requests; with more
// requests it is proportionally closer.
constexpr double kLower = 0.1, kLeastLower = 0.007;
constexpr double kFirst = 500'000;
// Two percent of requests may be among the slowest percent because of their stalls alone.
constexpr double kWithStalls = 97;

// Two years of nanoseconds fit next to a cause.
uint64_t Pack(const Part &part)
{
	static_assert(kCauses <= 256);
	return part.total_ns() << 8 | static_cast<uint64_t>(Index(part.cause));
}

} // namespace

SpeculativeBlame::SpeculativeBlame(size_t most, const LogHistogram &latencies, uint64_t threshold_ns)
    : most_(most), threshold_ns_(threshold_ns), likely_ns_(latencies.PercentileFloor(kWithStalls))
{
}

void SpeculativeBlame::GiveUp()
{
	active_ = false;
	stretches_ = {};
}

uint64_t SpeculativeBlame::From(const std::vector<FirstLook> &workers)
{
	uint64_t count = 0;
	std::vector<const LogHistogram *> calm;
	for (const FirstLook &w : workers) {
		count += w.bounds.calm.count;
		calm.push_back(&w.bounds.calm);
	}
	double so_far = static_cast<double>(PercentileFloor(calm, 99));
	double lower = std::max(kLeastLower, kLower * std::min(1.0, kFirst / static_cast<double>(count + 1)));
	uint64_t guess = static_cast<uint64_t>(so_far * (1 - lower));
	from_ns_ = std::min({guess, likely_ns_, threshold_ns_});
	highest_ns_ = std::max(highest_ns_, from_ns_);
	return from_ns_;
}

void SpeculativeBlame::Take(std::vector<Sheet> *sheets)
{
	for (Sheet &s : *sheets) {
		if (!active_) {
			s = {};
			continue;
		}
		Stretch to;
		for (SlowRequest r : s.requests) {
			const Part *parts = s.parts.data() + r.first_part;
			if (r.latency_ns < threshold_ns_) {
				AddFast(r, parts, &to);
				continue;
			}
			r.first_part = static_cast<uint32_t>(to.slow.parts.size());
			to.slow.parts.insert(to.slow.parts.end(), parts, parts + r.part_count);
			to.slow.requests.push_back(r);
		}
		s.requests.clear();
		s.parts.clear();
		fast_ += to.fast.size();
		slow_ += to.slow.requests.size();
		Shrink(&to);
		stretches_.push_back(std::move(to));
	}
	if (slow_ > most_)
		return GiveUp();
	if (fast_ <= 2 * most_)
		return;
	// The first estimate was lower.
	Leave(from_ns_);
	if (fast_ > 2 * most_ - most_ / 5)
		GiveUp();
}

// Shrinks the arrays to their content.
void SpeculativeBlame::Shrink(Stretch *s)
{
	s->fast.shrink_to_fit();
	s->fast_parts.shrink_to_fit();
	s->slow.requests.shrink_to_fit();
	s->slow.parts.shrink_to_fit();
}

// Drops requests below a latency.
void SpeculativeBlame::Leave(uint64_t least_ns)
{
	fast_ = 0;
	for (Stretch &s : stretches_) {
		size_t from = 0, to = 0, kept = 0;
		for (Fast f : s.fast) {
			if (f.latency_ns >= least_ns) {
				std::copy_n(s.fast_parts.begin() + static_cast<ptrdiff_t>(from), f.part_count,
					    s.fast_parts.begin() + static_cast<ptrdiff_t>(to));
				to += f.part_count;
				s.fast[kept++] = f;
			}
			from += f.part_count;
		}
		s.fast.resize(kept);
		s.fast_parts.resize(to);
		Shrink(&s);
		fast_ += kept;
	}
}

// Recreates what is needed of a request that is not slow: its latency, and its time by cause.
void SpeculativeBlame::Restore(const Stretch &s, Sheet *sheet)
{
	auto part = s.fast_parts.begin();
	for (const Fast &f : s.fast) {
		SlowRequest r = {};
		r.latency_ns = f.latency_ns;
		r.first_part = static_cast<uint32_t>(sheet->parts.size());
		r.part_count = f.part_count;
		r.status = FT_STATUS_OK;
		for (size_t p = 0; p < f.part_count; p++, ++part)
			sheet->parts.push_back({static_cast<Cause>(*part & 0xff), kNoHop, *part >> 8, 0});
		sheet->requests.push_back(r);
	}
}

void SpeculativeBlame::AddFast(const SlowRequest &r, const Part *parts, Stretch *to)
{
	to->fast.push_back({r.latency_ns, r.part_count});
	for (size_t p = 0; p < r.part_count; p++)
		to->fast_parts.push_back(Pack(parts[p]));
}

bool SpeculativeBlame::PassTo(uint64_t least_ns, SlowestRequests *kept)
{
	if (!active_ || least_ns < highest_ns_)
		return false;
	Leave(least_ns);
	size_t parts = 0;
	for (const Stretch &s : stretches_)
		parts += s.fast_parts.size() + s.slow.parts.size();
	kept->Expect(fast_ + slow_, parts);
	for (Stretch &s : stretches_) {
		Sheet sheet;
		std::swap(sheet, s.slow);
		// Slow requests are needed in full, of the others only the answered ones.
		Stretch slow;
		for (const SlowRequest &r : sheet.requests)
			if (!IsError(r.status))
				AddFast(r, sheet.parts.data() + r.first_part, &slow);
		Restore(s, &sheet);
		kept->Take(&sheet);
		s.fast.insert(s.fast.end(), slow.fast.begin(), slow.fast.end());
		s.fast_parts.insert(s.fast_parts.end(), slow.fast_parts.begin(), slow.fast_parts.end());
	}
	return true;
}

void SpeculativeBlame::PassAgainTo(SlowestRequests *kept) const
{
	for (const Stretch &s : stretches_) {
		Sheet sheet;
		Restore(s, &sheet);
		kept->Take(&sheet);
	}
}

} // namespace forktail::analysis
