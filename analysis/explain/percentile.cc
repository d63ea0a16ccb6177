// SPDX-License-Identifier: MIT
// Percentiles: exact ones of all requests, and what they would be without a cause.
#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/blame.h"
#include "analysis/passes.h"
#include "passes.h"

namespace forktail::analysis
{

// Nearest-rank percentiles. The selection narrows from one percentile to the next, so that all together take
// little longer than the first.

void TopPercentiles(uint64_t *top, size_t top_count, uint64_t count, Latencies *out)
{
	if (top_count == 0)
		return;
	uint64_t *begin = top, *end = top + top_count;
	// From the highest percentile down: the rest of the values is below a selected one.
	auto select = [&](double percentile) {
		uint64_t from_top = std::min<uint64_t>(count - Rank(count, percentile), top_count - 1);
		uint64_t *nth = top + from_top;
		if (nth >= end)
			nth = end - 1;
		std::nth_element(begin, nth, end, std::greater<>());
		uint64_t value = *nth;
		begin = nth;
		return value;
	};
	out->max = *std::max_element(top, end);
	out->p99_99 = select(99.99);
	out->p99_9 = select(99.9);
	out->p99 = select(99);
}

void LogHistogram::Merge(const LogHistogram &other)
{
	for (size_t i = 0; i < slots.size(); i++)
		slots[i] += other.slots[i];
	count += other.count;
	max = std::max(max, other.max);
}

size_t LogHistogram::SlotOfRank(uint64_t rank, uint64_t *before) const
{
	uint64_t seen = 0;
	for (size_t i = 0; i < slots.size(); i++) {
		*before = seen;
		seen += slots[i];
		if (seen >= rank)
			return i;
	}
	return slots.size();
}

uint64_t LogHistogram::PercentileFloor(double percentile) const
{
	uint64_t rank = Rank(count, percentile), before = 0;
	if (rank == 0)
		return 0;
	size_t slot = SlotOfRank(rank, &before);
	return slot < slots.size() ? Floor(slot) : max;
}

PercentileRange RangeOf(const LogHistogram &sample, double percentile)
{
	const double n = static_cast<double>(sample.count), q = percentile / 100,
		     off = 1.96 * std::sqrt(n * q * (1 - q)), low = std::floor(n * q - off),
		     high = std::ceil(n * q + off);
	const auto value = [&](double rank) {
		uint64_t before;
		return LogHistogram::Floor(sample.SlotOfRank(static_cast<uint64_t>(rank), &before));
	};
	return {low >= 1 ? value(low) : 0, high >= 1 && high <= n ? value(high) : 0};
}

uint64_t PercentileFloor(const std::vector<const LogHistogram *> &together, double percentile)
{
	uint64_t count = 0, max = 0, seen = 0;
	for (const LogHistogram *h : together) {
		count += h->count;
		max = std::max(max, h->max);
	}
	// From above, where there are fewer values.
	const uint64_t above = count - Rank(count, percentile);
	for (size_t slot = LogHistogram::Slot(max) + 1; count && slot-- > 0;) {
		for (const LogHistogram *h : together)
			seen += h->slots[slot];
		if (seen > above)
			return LogHistogram::Floor(slot);
	}
	return 0;
}

namespace
{

constexpr uint64_t kKeep = 100'000; // values of one rank that are stored
constexpr uint64_t kSlots = 1 << 17;

} // namespace

RankFinder::RankFinder(const LogHistogram &all, const std::vector<uint64_t> &ranks)
{
	for (uint64_t rank : ranks) {
		uint64_t before = 0;
		size_t slot = all.count ? all.SlotOfRank(rank, &before) : 0;
		wanted_.push_back({});
		if (!all.count) {
			wanted_.back().known = true;
			continue;
		}
		uint64_t high = slot + 1 < all.slots.size() ? LogHistogram::Floor(slot + 1) - 1 : UINT64_MAX;
		Narrow(&wanted_.back(), LogHistogram::Floor(slot), high, rank - before, all.slots[slot]);
	}
	Cover();
}

// Narrows the search to the value of that rank of the `count` in [low, high].
void RankFinder::Narrow(Wanted *w, uint64_t low, uint64_t high, uint64_t rank, uint64_t count)
{
	*w = {rank, low, high, count <= kKeep, 0, {}, {}, low == high, low};
	if (w->known || w->keep)
		return;
	while ((high - low) >> w->shift >= kSlots)
		w->shift++;
	w->counts.resize(((high - low) >> w->shift) + 1);
}

void RankFinder::Cover()
{
	low_ = 1;
	high_ = 0;
	for (const Wanted &w : wanted_) {
		if (w.known)
			continue;
		low_ = low_ > high_ ? w.low : std::min(low_, w.low);
		high_ = std::max(high_, w.high);
	}
}

bool RankFinder::Done() const
{
	return low_ > high_;
}

void RankFinder::AddInside(uint64_t value, uint64_t times)
{
	for (Wanted &w : wanted_) {
		if (w.known || value < w.low || value > w.high)
			continue;
		if (w.keep)
			w.values.insert(w.values.end(), times, value);
		else
			w.counts[(value - w.low) >> w.shift] += static_cast<uint32_t>(times);
	}
}

void RankFinder::EndPass()
{
	for (Wanted &w : wanted_) {
		if (w.known)
			continue;
		if (w.keep) {
			w.known = true;
			if (w.values.empty()) // fewer values than counted
				continue;
			auto nth = w.values.begin() +
				   static_cast<ptrdiff_t>(std::min<uint64_t>(w.rank, w.values.size()) - 1);
			std::nth_element(w.values.begin(), nth, w.values.end());
			w.value = *nth;
			w.values = {};
			continue;
		}
		uint64_t seen = 0, slot = 0;
		while (slot + 1 < w.counts.size() && seen + w.counts[slot] < w.rank)
			seen += w.counts[slot++];
		uint64_t low = w.low + (slot << w.shift);
		uint64_t high = std::min(w.high, low + (uint64_t{1} << w.shift) - 1);
		Narrow(&w, low, high, w.rank - seen, w.counts[slot]);
	}
	Cover();
}

// A percentile without a cause is the percentile of all requests, each without that cause's part. It is exact
// if every request that can matter was blamed in full and stored, else within a histogram's 0.05 %.

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

void WithoutTails::Count(const SlowRequest &r, Cause cause, uint64_t without_ns, uint64_t times)
{
	Difference &d = of_cause_[cause];
	d.slots[LogHistogram::Slot(r.latency_ns)] -= static_cast<int32_t>(times);
	d.slots[LogHistogram::Slot(without_ns)] += static_cast<int32_t>(times);
}

void WithoutTails::Add(const SlowRequest &r, const Part *parts, uint64_t times)
{
	if (IsError(r.status))
		return;
	std::array<uint64_t, kCauses> of = {};
	for (size_t p = 0; p < r.part_count; p++)
		of[static_cast<size_t>(Index(parts[p].cause))] += parts[p].total_ns();
	if (!finders_.empty()) {
		for (auto &[cause, finder] : finders_)
			finder.Add(r.latency_ns - of[static_cast<size_t>(Index(cause))], times);
		return;
	}
	all_.Add(r.latency_ns, times);
	for (int c = 0; c < kCauses; c++)
		if (uint64_t ns = of[static_cast<size_t>(c)])
			Count(r, static_cast<Cause>(c), r.latency_ns - ns, times);
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
