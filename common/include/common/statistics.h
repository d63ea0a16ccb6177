// SPDX-License-Identifier: MIT
// Histograms of durations for metrics: few fixed buckets and exact sums, which only grow.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace forktail::common
{

// Bounds of buckets are inclusive; they begin at 1 us and grow by a factor of 2^kBits.
template <size_t kCount, unsigned kBits> struct BucketCounts {
	static constexpr size_t kBuckets = kCount;
	static constexpr uint64_t BoundNs(size_t i) { return uint64_t{1000} << (kBits * i); }

	std::array<uint64_t, kCount + 1> counts = {}; // per bucket, not cumulative; [kCount] is +Inf
	uint64_t count = 0, sum_ns = 0;

	// Counts a duration `weight` times.
	void Add(uint64_t ns, uint64_t weight = 1)
	{
		const size_t doublings = ns ? static_cast<size_t>(std::bit_width((ns - 1) / 1000)) : 0;
		const size_t bucket = (doublings + kBits - 1) / kBits;
		counts[bucket < kCount ? bucket : kCount] += weight;
		count += weight;
		sum_ns += ns * weight;
	}
};
using Durations = BucketCounts<12, 2>;	  // x 4, up to 4.2 s
using ServiceTimes = BucketCounts<23, 1>; // x 2, up to 4.2 s

// Percentiles of values that are too many to store.

// The rank (1..count) of a percentile (0..100]. In ascending order, the value of this rank is the smallest
// one that at least that share of the values does not exceed. 0 for count 0.
uint64_t Rank(uint64_t count, double percentile);

// Values with an error below 1/128. Only powers of two that occur take memory.
class Histogram
{
public:
	void Add(uint64_t value, uint64_t times = 1);
	void Add(const Histogram &other);
	// The highest value of the slot of the percentile (0..100], at most the largest value; 0 if empty.
	uint64_t Percentile(double percentile) const;
	uint64_t count() const { return count_; }
	uint64_t max() const { return max_; }

private:
	static constexpr int kBits = 7;
	static constexpr uint64_t kSlots = 1 << kBits;
	using Row = std::array<uint32_t, kSlots>;

	Row &RowAt(size_t row);

	// Values below 2^kBits, then one row per power of two.
	std::vector<std::unique_ptr<Row>> rows_;
	uint64_t count_ = 0, max_ = 0;
};

} // namespace forktail::common
