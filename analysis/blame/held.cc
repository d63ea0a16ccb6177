// SPDX-License-Identifier: MIT
// See held.h.
#include "held.h"

#include <algorithm>
#include <cctype>

namespace forktail::analysis
{

bool IsBlockingCommand(const std::string &name)
{
	static const char *const blocking[] = {"WAIT",	     "WAITAOF", "BLPOP",  "BRPOP",
					       "BRPOPLPUSH", "BLMOVE",	"BLMPOP", "BZPOPMIN",
					       "BZPOPMAX",   "BZMPOP",	"XREAD",  "XREADGROUP"};
	std::string upper = name.substr(0, name.find(' '));
	for (char &c : upper)
		c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
	return std::ranges::find(blocking, upper) != std::end(blocking);
}

uint64_t HeldTimes::Between(uint64_t from_ns, uint64_t to_ns) const
{
	uint64_t held_ns = 0;
	auto at =
	    std::ranges::partition_point(intervals_, [&](const Interval &i) { return i.to_ns <= from_ns; });
	for (; at != intervals_.end() && at->from_ns < to_ns; ++at)
		held_ns += std::min(to_ns, at->to_ns) - std::max(from_ns, at->from_ns);
	return held_ns;
}

namespace
{

// The value that holds for half of the time. A series has a sample where its value changes, so that a count
// of samples would say how often it was blocked, not for how long.
double Usual(const std::vector<Sample> &samples, uint64_t end_ns)
{
	struct Held {
		double value;
		uint64_t ns;
	};
	std::vector<Held> values;
	uint64_t total_ns = 0;
	for (size_t i = 0; i < samples.size(); i++) {
		const uint64_t until_ns = i + 1 < samples.size() ? samples[i + 1].t_ns : end_ns;
		values.push_back(
		    {samples[i].value, until_ns > samples[i].t_ns ? until_ns - samples[i].t_ns : 0});
		total_ns += values.back().ns;
	}
	std::ranges::sort(values, {}, &Held::value);
	uint64_t below_ns = 0;
	for (const Held &v : values)
		if ((below_ns += v.ns) * 2 >= total_ns)
			return v.value;
	return values.back().value;
}

} // namespace

HeldBuilder::HeldBuilder(const Run &run)
{
	if (run.servers.size() != 1 || !run.behind.empty())
		return;
	const auto series = std::ranges::find_if(
	    run.series, [](const Series &s) { return s.name == "redis.blocked_clients"; });
	if (series == run.series.end() || series->samples.empty())
		return;
	const double usual = Usual(series->samples, run.end_ns);
	for (const Sample &s : series->samples)
		if (s.value >= usual + 1)
			instants_.push_back({s.t_ns, s.value - usual});
}

void HeldBuilder::Add(uint64_t from_ns, uint64_t to_ns)
{
	auto at =
	    std::ranges::partition_point(instants_, [&](const Instant &i) { return i.t_ns <= from_ns; });
	for (; at != instants_.end() && at->t_ns < to_ns; ++at) {
		at->waiting++;
		at->from_ns = std::min(at->from_ns, from_ns);
		at->to_ns = std::max(at->to_ns, to_ns);
	}
}

HeldTimes HeldBuilder::Finish() const
{
	HeldTimes held;
	for (const Instant &i : instants_) {
		if (!i.waiting || 2 * i.blocked < static_cast<double>(i.waiting))
			continue;
		if (!held.intervals_.empty() && i.from_ns <= held.intervals_.back().to_ns)
			held.intervals_.back().to_ns = std::max(held.intervals_.back().to_ns, i.to_ns);
		else
			held.intervals_.push_back({i.from_ns, i.to_ns});
	}
	return held;
}

} // namespace forktail::analysis
