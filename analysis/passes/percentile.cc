// SPDX-License-Identifier: MIT
// Nearest-rank percentiles. The selection narrows from one percentile to the next, so that all together take
// little longer than the first.
#include "percentile.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace forktail::analysis
{

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

void RankFinder::AddInside(uint64_t value)
{
	for (Wanted &w : wanted_) {
		if (w.known || value < w.low || value > w.high)
			continue;
		if (w.keep)
			w.values.push_back(value);
		else
			w.counts[(value - w.low) >> w.shift]++;
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

} // namespace forktail::analysis
