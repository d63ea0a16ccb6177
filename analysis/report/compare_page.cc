// SPDX-License-Identifier: MIT
// Writes the compare page: a comparison as JSON, inserted into the template that report/ builds. compare/ has
// judged it; here latencies are only summed to what a screen can show.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "analysis/report.h"
#include "analysis/timeline.h"
#include "common/json.h"
#include "page_data.h"
#include "template.h"

namespace forktail::analysis::report
{

namespace
{

constexpr int kCompareFormat = 1;
constexpr int kBinsPerDecadeCompared = 20; // of latency per decade
constexpr size_t kColumns = 600;	   // maximum number of columns of time
constexpr size_t kCurvePoints = 500;	   // maximum number of points of a distribution

// A number, or null if it is not finite.
common::Json Finite(double value)
{
	return std::isfinite(value) ? common::Json(value) : common::Json();
}

common::Json IntervalJson(const compare::Interval &interval)
{
	if (!interval.known)
		return common::Json();
	return {Finite(interval.low), Finite(interval.high)};
}

const char *UnitName(compare::Unit unit)
{
	switch (unit) {
	case compare::Unit::Nanoseconds:
		return "ns";
	case compare::Unit::PerSecond:
		return "1/s";
	case compare::Unit::Seconds:
		return "s";
	case compare::Unit::Bytes:
		return "bytes";
	case compare::Unit::Count:
		break;
	}
	return "";
}

common::Json DifferenceJson(const compare::Difference &d)
{
	common::Json causes = common::Json::array();
	for (const compare::CauseChange &c : d.causes)
		causes.push_back({{"cause", Index(c.cause)}, {"a_ns", c.a_ns}, {"b_ns", c.b_ns}});
	return {{"name", d.name},
		{"unit", UnitName(d.unit)},
		{"a", Finite(d.a)},
		{"b", Finite(d.b)},
		{"ratio", Finite(d.ratio)},
		{"ratio_interval", IntervalJson(d.ratio_interval)},
		{"change", Finite(d.change)},
		{"change_interval", IntervalJson(d.change_interval)},
		{"judged", d.judged},
		{"p", Finite(d.holm_p)},
		{"verdict", compare::VerdictName(d.verdict)},
		{"causes", causes},
		{"sentence", d.sentence}};
}

common::Json DifferencesJson(const std::vector<compare::Difference> &differences)
{
	common::Json all = common::Json::array();
	for (const compare::Difference &d : differences)
		all.push_back(DifferenceJson(d));
	return all;
}

// The share of a side's requests that took longer than a latency, for descending shares.
common::Json CurveJson(const compare::ComparedSide &side)
{
	std::map<uint32_t, uint64_t> counts;
	uint64_t all = 0;
	for (const compare::RunSample &run : side.runs)
		for (const compare::SecondOfRun &second : run.by_second)
			for (const auto &[bucket, count] : second.latencies) {
				counts[bucket] += count;
				all += count;
			}
	common::Json curve = common::Json::array();
	size_t step = counts.size() / kCurvePoints + 1, i = 0;
	uint64_t below = 0;
	for (const auto &[bucket, count] : counts) {
		// All buckets of the tail, which have few requests each.
		if (i++ % step == 0 || (all - below) * 1000 < all)
			curve.push_back({static_cast<double>(all - below) / static_cast<double>(all),
					 compare::BucketNs(bucket)});
		below += count;
	}
	return curve;
}

// Requests by time and latency: [column, bin, count per run]. Bin b starts at 10^(b / kBinsPerDecadeCompared)
// ns.
common::Json HeatJson(const compare::ComparedSide &side, size_t seconds_per_column)
{
	std::map<std::pair<size_t, int>, uint64_t> cells;
	for (const compare::RunSample &run : side.runs)
		for (size_t s = 0; s < run.by_second.size(); s++)
			for (const auto &[bucket, count] : run.by_second[s].latencies) {
				double ns =
				    static_cast<double>(std::max<uint64_t>(compare::BucketNs(bucket), 1));
				cells[{s / seconds_per_column,
				       static_cast<int>(std::log10(ns) * kBinsPerDecadeCompared)}] += count;
			}
	common::Json heat = common::Json::array();
	for (const auto &[cell, count] : cells)
		heat.push_back({cell.first, cell.second,
				static_cast<double>(count) / static_cast<double>(side.runs.size())});
	return heat;
}

size_t LongestOf(const compare::Comparison &c)
{
	size_t seconds = 1;
	for (const compare::ComparedSide *side : {&c.a, &c.b})
		for (const compare::RunSample &run : side->runs)
			seconds = std::max(seconds, run.by_second.size());
	return seconds;
}

common::Json SideJson(const compare::ComparedSide &side, size_t seconds_per_column)
{
	common::Json runs = common::Json::array();
	for (const compare::RunSample &run : side.runs) {
		runs.push_back({{"name", run.name},
				{"path", run.path},
				{"requests", run.requests},
				{"errors", run.errors},
				{"drops", run.drops},
				{"seconds", run.seconds},
				{"rate", run.rate},
				{"latency_ns", LatenciesJson<common::Json>(run.latencies)}});
	}
	return {{"given", side.given},
		{"runs", runs},
		{"curve", CurveJson(side)},
		{"heat", HeatJson(side, seconds_per_column)}};
}

common::Json ComparedEpisodesJson(const compare::Comparison &c)
{
	auto sum = [](const compare::EpisodeSum &s, double per_run) {
		return common::Json{{"per_run", Finite(per_run)},
				    {"requests", s.requests},
				    {"worst_ns", s.worst_ns},
				    {"longest_ns", s.longest_ns},
				    {"request_s", s.request_seconds}};
	};
	common::Json episodes = common::Json::array();
	for (const compare::EpisodeChange &e : c.episodes)
		episodes.push_back({{"cause", Index(e.cause)},
				    {"a", sum(e.a, e.per_run.a)},
				    {"b", sum(e.b, e.per_run.b)},
				    {"per_run", DifferenceJson(e.per_run)}});
	return episodes;
}

common::Json FactChangesJson(const compare::Comparison &c)
{
	common::Json facts = common::Json::array();
	for (const compare::FactChange &f : c.facts)
		facts.push_back(
		    {{"group", f.group}, {"name", f.name}, {"a", f.a}, {"b", f.b}, {"matters", f.matters}});
	return facts;
}

common::Json ComparePageJson(const compare::Comparison &c)
{
	common::Json names = common::Json::array(), looks = common::Json::array();
	for (int i = 0; i < kCauses; i++) {
		const CauseInfo &info = InfoOf(static_cast<Cause>(i));
		names.push_back(info.name);
		looks.push_back({FamilyName(info.family), info.light, info.dark, info.meaning});
	}
	const size_t seconds = LongestOf(c), step = (seconds + kColumns - 1) / kColumns;
	return {{"format", kCompareFormat},
		{"version", FORKTAIL_VERSION},
		{"a", SideJson(c.a, step)},
		{"b", SideJson(c.b, step)},
		{"seconds", seconds},
		{"column_s", step},
		{"bins_per_decade", kBinsPerDecadeCompared},
		{"slow_ns", c.slow_ns},
		{"advisory", c.advisory},
		{"allowed", c.allowed},
		{"verdict", compare::VerdictName(c.verdict)},
		{"reason", c.reason},
		{"changes", c.changes},
		{"notes", c.notes},
		{"facts", FactChangesJson(c)},
		{"percentiles", DifferencesJson(c.percentiles)},
		{"others", DifferencesJson({c.throughput, c.fork_seconds, c.fork_longest, c.rss})},
		{"causes", DifferencesJson(c.causes)},
		{"stalled", DifferencesJson(c.stalled)},
		{"episodes", ComparedEpisodesJson(c)},
		{"cause_names", names},
		{"cause_looks", looks}};
}

} // namespace

bool WriteComparePage(const compare::Comparison &comparison, const std::string &path, std::string *error)
{
	uint32_t mode = 0666;
	for (const compare::ComparedSide *side : {&comparison.a, &comparison.b})
		for (const compare::RunSample &run : side->runs)
			mode &= run.shared_mode;
	return WritePage({ft_compare_template, ft_compare_template_size()}, {}, ComparePageJson(comparison),
			 ReportArrays(), mode, path, error);
}

} // namespace forktail::analysis::report
