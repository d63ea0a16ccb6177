// SPDX-License-Identifier: MIT
// Nearest-rank percentiles. Selection narrows from the low percentile to the high one, so that all of them
// cost little more than the first.
#include "percentile.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace forktail
{

uint64_t Rank(uint64_t count, double percentile)
{
	// In millionths of a percent as a whole number: 99.9 / 100 * 1000 is a little over 999 in binary.
	uint64_t millionths = static_cast<uint64_t>(std::llround(percentile * 1e6));
	unsigned __int128 scaled = static_cast<unsigned __int128>(count) * millionths + 99'999'999;
	uint64_t rank = static_cast<uint64_t>(scaled / 100'000'000);
	return std::clamp<uint64_t>(rank, count ? 1 : 0, count);
}

Latencies LatenciesOf(uint64_t *values, size_t count)
{
	Latencies l;
	if (count == 0)
		return l;
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += static_cast<double>(values[i]);
	l.mean = sum / static_cast<double>(count);
	uint64_t *begin = values, *end = values + count;
	auto select = [&](double percentile) {
		uint64_t *nth = values + Rank(count, percentile) - 1;
		std::nth_element(begin, nth, end);
		begin = nth;
		return *nth;
	};
	l.p50 = select(50);
	l.p90 = select(90);
	l.p99 = select(99);
	l.p99_9 = select(99.9);
	l.p99_99 = select(99.99);
	l.max = *std::max_element(begin, end);
	return l;
}

void TopPercentiles(uint64_t *top, size_t top_count, uint64_t count, Latencies *out)
{
	if (top_count == 0)
		return;
	uint64_t *begin = top, *end = top + top_count;
	// From the highest percentile down: what is left of a selected value is below it.
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

uint64_t LogHistogram::PercentileFloor(double percentile) const
{
	uint64_t rank = Rank(count, percentile), seen = 0;
	if (rank == 0)
		return 0;
	for (size_t i = 0; i < slots.size(); i++) {
		seen += slots[i];
		if (seen >= rank)
			return Floor(i);
	}
	return max;
}

} // namespace forktail
