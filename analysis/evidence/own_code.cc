// SPDX-License-Identifier: MIT
// Each sample is weighted with its sampling period, because long iterations are sampled more often. A
// thread's samples are sorted by time, so an interval's samples are found by bisection. The most frequent
// stack represents an activity.
#include "own_code.h"

#include <algorithm>
#include <cmath>

namespace forktail::analysis
{

// The period in recordings without a period per sample: 1 ms, in sixteenths of a millisecond.
constexpr double kOldPeriod = 16;

double ActivityTime::error() const
{
	return samples ? 1 / std::sqrt(static_cast<double>(samples)) : 1;
}

void OwnCodeCount::Add(const Thread &thread, uint64_t from_ns, uint64_t to_ns)
{
	const ft_cpu_sample *first = run_.cpu_samples.data() + thread.first_cpu_sample;
	const ft_cpu_sample *end = first + thread.cpu_sample_count;
	const ft_cpu_sample *s =
	    std::partition_point(first, end, [&](const ft_cpu_sample &x) { return x.t_ns < from_ns; });
	for (; s < end && s->t_ns < to_ns; s++) {
		if (s->owner != FT_OWN_CODE)
			continue;
		const Activity &activity = activities_.Of(static_cast<size_t>(s - run_.cpu_samples.data()));
		ActivityCount &count = counts_[activity.name];
		count.samples++;
		count.weight += s->period ? s->period : kOldPeriod;
		count.lua_samples += activity.in_lua;
		count.kernel_samples += activity.in_kernel;
		count.transaction_samples += activity.in_transaction;
		count.stacks[activity.where]++;
	}
}

void OwnCodeCount::Add(const OwnCodeCount &other)
{
	for (const auto &[name, more] : other.counts_) {
		ActivityCount &count = counts_[name];
		count.samples += more.samples;
		count.lua_samples += more.lua_samples;
		count.kernel_samples += more.kernel_samples;
		count.transaction_samples += more.transaction_samples;
		count.weight += more.weight;
		for (const auto &[stack, samples] : more.stacks)
			count.stacks[stack] += samples;
	}
}

OwnCode OwnCodeCount::Result(uint64_t own_ns) const
{
	OwnCode result;
	double weight = 0;
	for (const auto &[name, count] : counts_) {
		result.samples += count.samples;
		result.transaction_samples += count.transaction_samples;
		weight += count.weight;
	}
	for (const auto &[name, count] : counts_) {
		auto most =
		    std::max_element(count.stacks.begin(), count.stacks.end(),
				     [](const auto &a, const auto &b) { return a.second < b.second; });
		double share = count.weight / weight;
		result.activities.push_back(
		    {name, count.samples, count.lua_samples, count.kernel_samples, share,
		     static_cast<uint64_t>(share * static_cast<double>(own_ns)), most->first});
	}
	std::stable_sort(result.activities.begin(), result.activities.end(),
			 [](const ActivityTime &a, const ActivityTime &b) { return a.share > b.share; });
	return result;
}

} // namespace forktail::analysis
