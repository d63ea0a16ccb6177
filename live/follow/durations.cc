// SPDX-License-Identifier: MIT
// Counts of durations in buckets, as metrics have them.
#include "live.h"

namespace forktail::live
{

void Durations::Add(uint64_t ns)
{
	size_t bucket = 0;
	while (bucket < kBuckets && ns > BucketNs(bucket))
		bucket++;
	counts[bucket]++;
	count++;
	sum_ns += ns;
}

} // namespace forktail::live
