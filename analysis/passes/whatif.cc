// SPDX-License-Identifier: MIT
// A percentile without a cause is the percentile of all requests, each without that cause's part. It is exact
// if every request that can matter was blamed in full and stored, else within a histogram's 0.05 %.
#include "whatif.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

// The latencies of all blamed and answered requests, less one cause.
std::vector<uint64_t> LatenciesWithout(const Blamed &blamed, const std::vector<Part> &parts, Cause cause)
{
	std::vector<uint64_t> values;
	values.reserve(blamed.size());
	for (const SlowRequest &r : blamed) {
		if (IsError(r.status))
			continue;
		uint64_t value = r.latency_ns;
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
			if (parts[p].cause == cause)
				value -= parts[p].total_ns();
		values.push_back(value);
	}
	return values;
}

Latencies FromHistogram(const LogHistogram &h, const Latencies &all)
{
	Latencies l;
	l.p99 = std::min(h.PercentileFloor(99), all.p99);
	l.p99_9 = std::min(h.PercentileFloor(99.9), all.p99_9);
	l.p99_99 = std::min(h.PercentileFloor(99.99), all.p99_99);
	l.max = std::min(h.max, all.max);
	return l;
}

} // namespace

void WithoutTails::Count(const SlowRequest &r, Cause cause, uint64_t without_ns)
{
	Difference &d = of_cause_[cause];
	d.slots[LogHistogram::Slot(r.latency_ns)]--;
	d.slots[LogHistogram::Slot(without_ns)]++;
}

void WithoutTails::Add(const SlowRequest &r, const Part *parts)
{
	if (IsError(r.status))
		return;
	std::array<uint64_t, kCauses> of = {};
	for (size_t p = 0; p < r.part_count; p++)
		of[static_cast<size_t>(Index(parts[p].cause))] += parts[p].total_ns();
	if (!finders_.empty()) {
		for (auto &[cause, finder] : finders_)
			finder.Add(r.latency_ns - of[static_cast<size_t>(Index(cause))]);
		return;
	}
	all_.Add(r.latency_ns);
	for (int c = 0; c < kCauses; c++)
		if (uint64_t ns = of[static_cast<size_t>(c)])
			Count(r, static_cast<Cause>(c), r.latency_ns - ns);
}

// p99, p99.9, p99.99 and max, among the added requests.
std::vector<uint64_t> WithoutTails::Ranks() const
{
	std::vector<uint64_t> ranks;
	for (double percentile : {99.0, 99.9, 99.99, 100.0}) {
		uint64_t above = answered_ - Rank(answered_, percentile);
		ranks.push_back(all_.count - std::min(above, all_.count - 1));
	}
	return ranks;
}

void WithoutTails::EndPass()
{
	for (auto &[cause, difference] : of_cause_) {
		LogHistogram without = all_;
		for (size_t i = 0; i < without.slots.size(); i++)
			without.slots[i] += static_cast<uint32_t>(difference.slots[i]);
		finders_.emplace(cause, RankFinder(without, Ranks()));
	}
	of_cause_.clear();
}

bool WithoutTails::EndFurtherPass()
{
	bool done = true;
	for (auto &[cause, finder] : finders_) {
		finder.EndPass();
		done &= finder.Done();
	}
	return done;
}

Latencies WithoutTails::Without(Cause cause) const
{
	Latencies l;
	auto found = finders_.find(cause);
	if (found == finders_.end())
		return l;
	l.p99 = found->second.Value(0);
	l.p99_9 = found->second.Value(1);
	l.p99_99 = found->second.Value(2);
	l.max = found->second.Value(3);
	return l;
}

void FillWhatIf(const WhatIf &from, Blame *blame)
{
	for (CauseRow &row : blame->causes) {
		if (from.histograms && !IsStall(row.cause)) {
			row.without = FromHistogram(
			    (*from.histograms)[static_cast<size_t>(Index(row.cause) - kStallCauses)],
			    blame->latencies);
		} else if (from.tails) {
			row.without = from.tails->Without(row.cause);
		} else {
			std::vector<uint64_t> values = LatenciesWithout(from.blamed, from.parts, row.cause);
			TopPercentiles(values.data(), values.size(), from.answered, &row.without);
		}
	}
}

} // namespace forktail::analysis
