// SPDX-License-Identifier: MIT
// A sample stands for its period: of a long turn of the event loop there are more than of others.
// A thread's samples lie in the order of time, so those of an interval are found by bisection. Of all the
// stacks of an activity the one that was seen most stands for it.
#include "own_code.h"

#include <algorithm>
#include <cmath>

namespace forktail::analysis
{

// Of recordings that had one period and did not tell it, in a sample's sixteenths of a millisecond.
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
		Counted &counted = counted_[activity.name];
		counted.samples++;
		counted.weight += s->period ? s->period : kOldPeriod;
		counted.lua_samples += activity.in_lua;
		counted.kernel_samples += activity.in_kernel;
		counted.stacks[activity.where]++;
	}
}

void OwnCodeCount::Add(const OwnCodeCount &other)
{
	for (const auto &[name, more] : other.counted_) {
		Counted &counted = counted_[name];
		counted.samples += more.samples;
		counted.lua_samples += more.lua_samples;
		counted.kernel_samples += more.kernel_samples;
		counted.weight += more.weight;
		for (const auto &[stack, samples] : more.stacks)
			counted.stacks[stack] += samples;
	}
}

OwnCode OwnCodeCount::Result(uint64_t own_ns) const
{
	OwnCode result;
	double weight = 0;
	for (const auto &[name, counted] : counted_) {
		result.samples += counted.samples;
		weight += counted.weight;
	}
	for (const auto &[name, counted] : counted_) {
		auto most =
		    std::max_element(counted.stacks.begin(), counted.stacks.end(),
				     [](const auto &a, const auto &b) { return a.second < b.second; });
		double share = counted.weight / weight;
		result.activities.push_back(
		    {name, counted.samples, counted.lua_samples, counted.kernel_samples, share,
		     static_cast<uint64_t>(share * static_cast<double>(own_ns)), most->first});
	}
	std::stable_sort(result.activities.begin(), result.activities.end(),
			 [](const ActivityTime &a, const ActivityTime &b) { return a.share > b.share; });
	return result;
}

} // namespace forktail::analysis
