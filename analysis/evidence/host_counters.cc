// SPDX-License-Identifier: MIT
// The counters are read ten times a second, and equal readings are recorded once.
//
// A thread does not see that the hypervisor gave its CPU to another guest: stolen time looks like own code.
// Only the host's counter of stolen time shows it. An interval is extended to the readings around it.
#include "host_counters.h"

#include <algorithm>
#include <map>
#include <utility>

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
	uint64_t grown = 0;
	for (const Series &series : run.series)
		grown += series.name == name ? GrownBy(series, from_ns, to_ns) : 0;
	return grown;
}

// A cgroup and how much its counter grew.
using Grown = std::pair<std::string, uint64_t>;

// Each cgroup whose counter grew, the largest first. In version 2 a cgroup's counter contains those below it,
// so one is left out if one below it is there.
std::vector<Grown> GrownCgroups(const Run &run, const std::string &name, uint64_t from_ns, uint64_t to_ns)
{
	std::map<std::string, uint64_t> grown;
	for (const Series &series : run.series) {
		const auto label = series.labels.find("cgroup");
		if (series.name != name || label == series.labels.end())
			continue;
		if (const uint64_t by = GrownBy(series, from_ns, to_ns))
			grown[label->second] += by;
	}
	std::vector<Grown> innermost;
	for (const auto &cgroup : grown) {
		const std::string below = cgroup.first + "/";
		const auto next = grown.lower_bound(below);
		if (next == grown.end() || next->first.compare(0, below.size(), below) != 0)
			innermost.emplace_back(cgroup);
	}
	std::stable_sort(innermost.begin(), innermost.end(),
			 [](const Grown &a, const Grown &b) { return a.second > b.second; });
	return innermost;
}

// "the cgroup /a (3 times), the cgroup /b (1 time)", the first ones; "" without any.
std::string CgroupsText(const std::vector<Grown> &cgroups, const char *one, const char *many)
{
	constexpr size_t most = 3;
	std::string text;
	for (size_t i = 0; i < std::min(cgroups.size(), most); i++)
		text += (i ? ", the cgroup " : "the cgroup ") + cgroups[i].first + " (" +
			common::Plural(cgroups[i].second, one, many) + ")";
	if (cgroups.size() > most)
		text += ", " + common::Plural(cgroups.size() - most, "other", "others");
	return text;
}

} // namespace

std::vector<std::string> MemoryEventSentences(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	static constexpr struct {
		const char *counter, *limit;
	} limits[] = {{"cgroup.memory.limit_hits", "the memory limit"},
		      {"cgroup.memory.high_hits", "memory.high"}};
	const std::string reading = common::FormatDuration(kReadingNs);
	const std::string when = ", at a time known to within " + reading;
	std::vector<std::string> sentences;
	if (uint64_t kills = GrownBy(run, "host.oom_kills", from_ns, to_ns)) {
		const std::string where = CgroupsText(
		    GrownCgroups(run, "cgroup.memory.oom_kills", from_ns, to_ns), "process", "processes");
		sentences.push_back("the kernel's OOM killer killed " +
				    common::Plural(kills, "process", "processes") + " on this host" +
				    (where.empty() ? "" : ", of these in " + where) + when);
	}
	for (const auto &[counter, limit] : limits)
		if (const std::string where =
			CgroupsText(GrownCgroups(run, counter, from_ns, to_ns), "time", "times");
		    !where.empty())
			// Many cgroups are read less often.
			sentences.push_back(
			    std::string(limit) + " was reached by " + where +
			    "; a thread that reaches it has to reclaim memory (counted between "
			    "two readings, usually " +
			    reading + " apart)");
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
