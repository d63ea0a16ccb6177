// SPDX-License-Identifier: MIT
// Histograms of durations. Those for metrics have few fixed buckets and exact sums, and only grow. Those for
// percentiles have many small buckets, so that they can be added and stay small however many durations they
// hold.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace forktail::live
{

// Buckets for metrics. Their bounds are inclusive; they begin at 1 us and grow by a factor of 2^kBits.
template <size_t kCount, unsigned kBits> struct BucketCounts {
	static constexpr size_t kBuckets = kCount;
	static constexpr uint64_t BoundNs(size_t i) { return uint64_t{1000} << (kBits * i); }

	std::array<uint64_t, kCount + 1> counts = {}; // per bucket, not cumulative; [kCount] is +Inf
	uint64_t count = 0, sum_ns = 0;

	// Counts a duration that stands for `weight` of them.
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

// Percentiles of durations up to 73 minutes (longer ones count as that), too high by at most 1/32.
class DurationSpread
{
public:
	void Add(uint64_t ns);
	void Add(const DurationSpread &other);
	// The percentile `p` (0 to 1): a bound that at least this share of the durations does not exceed,
	// and at most the maximum. 0 without durations.
	uint64_t Percentile(double p) const;
	uint64_t count() const { return count_; }
	uint64_t max_ns() const { return max_ns_; }

private:
	static constexpr unsigned kSubBits = 5, kMostBits = 42;
	std::array<uint32_t, (kMostBits - kSubBits + 1) << kSubBits> slots_ = {};
	uint64_t count_ = 0, max_ns_ = 0;
};

} // namespace forktail::live
