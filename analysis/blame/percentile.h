// SPDX-License-Identifier: MIT
// Percentiles: exact ones by selection, and a fine histogram where millions of derived values are not worth
// keeping.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blame.h"

namespace forktail
{

// The rank (1..count) of a percentile (0..100]: the smallest value that at least that share of the values
// does not exceed is the value of this rank in ascending order. 0 for count 0.
uint64_t Rank(uint64_t count, double percentile);

// Percentiles of the values, which get reordered. All 0 for none.
Latencies LatenciesOf(uint64_t *values, size_t count);

// Sets p99 .. max of `count` values of which the `top_count` largest are given (and reordered): enough of
// them that the rank of p99 is among them.
void TopPercentiles(uint64_t *top, size_t top_count, uint64_t count, Latencies *out);

// Counts values in buckets 1/2048 wide relative to the value: 0.05 % at most between two of one bucket.
struct LogHistogram {
	static constexpr int kBits = 11;
	std::vector<uint32_t> slots = std::vector<uint32_t>(static_cast<size_t>(64 - kBits + 1) << kBits);
	uint64_t count = 0;
	uint64_t max = 0;

	static size_t Slot(uint64_t value)
	{
		int above = std::bit_width(value | ((1u << kBits) - 1)) - kBits;
		return (static_cast<size_t>(above) << kBits) + (value >> above);
	}
	static uint64_t Floor(size_t slot)
	{
		return static_cast<uint64_t>(slot & ((1u << kBits) - 1)) << (slot >> kBits);
	}
	void Add(uint64_t value)
	{
		slots[Slot(value)]++;
		count++;
		max = value > max ? value : max;
	}
	void Merge(const LogHistogram &other);
	// The least value the percentile's bucket can hold; 0 when empty.
	uint64_t PercentileFloor(double percentile) const;
};

} // namespace forktail
