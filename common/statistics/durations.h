// SPDX-License-Identifier: MIT
// Histograms of durations for metrics: few fixed buckets and exact sums, which only grow.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

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

} // namespace forktail::common
