// SPDX-License-Identifier: MIT
// The counters are read ten times a second, and equal readings are recorded once.
//
// A thread does not see that the hypervisor gave its CPU to another guest: stolen time looks like own code.
// Only the host's counter of stolen time shows it. An interval is extended to the readings around it.
#include "host_counters.h"

#include <algorithm>

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kReadingNs = 100'000'000; // a reading covers the time since the previous one

// How much a counter grew between the readings around an interval.
uint64_t GrownBy(const Series &series, uint64_t from_ns, uint64_t to_ns)
{
	double grown = 0;
	for (size_t i = 1; i < series.samples.size(); i++) {
		const Sample &s = series.samples[i];
		if (s.t_ns > from_ns && s.t_ns - std::min(s.t_ns, kReadingNs) < to_ns)
			grown += std::max(s.value - series.samples[i - 1].value, 0.0);
	}
	return static_cast<uint64_t>(grown);
}

// The same of the host's counter with this name.
uint64_t GrownBy(const Run &run, const std::string &name, uint64_t from_ns, uint64_t to_ns)
{
	const auto series = std::find_if(run.series.begin(), run.series.end(),
					 [&](const Series &s) { return s.name == name; });
	return series == run.series.end() ? 0 : GrownBy(*series, from_ns, to_ns);
}

// A cgroup whose counter grew, and how much. In version 2 an ancestor's counter contains those below it, so
// it is the innermost one; "" if none grew.
struct GrownCgroup {
	std::string cgroup;
	uint64_t by = 0;
};

GrownCgroup InnermostGrown(const Run &run, const std::string &name, uint64_t from_ns, uint64_t to_ns)
{
	GrownCgroup grown;
	for (const Series &series : run.series) {
		const auto label = series.labels.find("cgroup");
		if (series.name != name || label == series.labels.end() ||
		    label->second.size() < grown.cgroup.size())
			continue;
		if (uint64_t by = GrownBy(series, from_ns, to_ns))
			grown = {label->second, by};
	}
	return grown;
}

std::string LimitSentence(const GrownCgroup &grown, const char *limit)
{
	return "the cgroup " + grown.cgroup + " reached " + limit + " " +
	       common::Plural(grown.by, "time", "times") + ", where its threads reclaim memory themselves";
}

} // namespace

std::vector<std::string> MemoryEventSentences(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	const std::string when = ", at a time known to within " + common::FormatDuration(kReadingNs);
	std::vector<std::string> sentences;
	const GrownCgroup killed = InnermostGrown(run, "cgroup.memory.oom_kills", from_ns, to_ns);
	if (uint64_t kills = GrownBy(run, "host.oom_kills", from_ns, to_ns))
		sentences.push_back(
		    "the kernel's OOM killer killed " + common::Plural(kills, "process", "processes") +
		    " on this host" +
		    (killed.by ? ", " + std::to_string(killed.by) + " of them in the cgroup " + killed.cgroup
			       : "") +
		    when);
	const GrownCgroup at_limit = InnermostGrown(run, "cgroup.memory.limit_hits", from_ns, to_ns),
			  high = InnermostGrown(run, "cgroup.memory.high_hits", from_ns, to_ns);
	if (at_limit.by)
		sentences.push_back(LimitSentence(at_limit, "its memory limit") + when);
	if (high.by)
		sentences.push_back(LimitSentence(high, "memory.high") + when);
	if (GrownBy(run, "host.page_cache_drops", from_ns, to_ns))
		sentences.push_back("the page cache was dropped (/proc/sys/vm/drop_caches)" + when);
	if (GrownBy(run, "host.slab_drops", from_ns, to_ns))
		sentences.push_back("the kernel's caches of files and directories were dropped "
				    "(/proc/sys/vm/drop_caches)" +
				    when);
	return sentences;
}

std::string StealSentence(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns)
{
	for (const Series &series : run.series) {
		if (series.name != "host.cpu.steal")
			continue;
		// Equal readings are recorded once: a value is valid until one reading before the next
		// sample.
		double stolen_ns = 0;
		uint64_t first_ns = 0, last_ns = 0;
		for (size_t i = 0; i < series.samples.size(); i++) {
			const Sample &s = series.samples[i];
			uint64_t begin = s.t_ns - std::min(s.t_ns, kReadingNs), end = run.end_ns;
			if (i + 1 < series.samples.size())
				end = series.samples[i + 1].t_ns - kReadingNs;
			if (end <= from_ns || begin >= to_ns || end <= begin)
				continue;
			begin = std::max(begin, from_ns - std::min(from_ns, kReadingNs));
			end = std::min(end, to_ns + kReadingNs);
			stolen_ns +=
			    s.value / 100 * std::max(run.cpus, 1u) * static_cast<double>(end - begin);
			first_ns = first_ns ? first_ns : begin;
			last_ns = end;
		}
		if (stolen_ns * 4 >= static_cast<double>(worst_ns) && stolen_ns >= 1)
			return "the hypervisor took " +
			       common::FormatDuration(static_cast<uint64_t>(stolen_ns)) +
			       " of CPU time from this host (steal) within " +
			       common::FormatDuration(last_ns - first_ns);
	}
	return "";
}

} // namespace forktail::analysis
