// SPDX-License-Identifier: MIT
// A comparison as JSON; docs/reference/diff-and-gate.md lists its members. JSON has no infinity: such a bound is null.
#include <cmath>
#include <nlohmann/json.hpp>

#include "compare.h"

namespace forktail::analysis::compare
{

namespace
{

using Out = nlohmann::ordered_json;

Out JsonNumber(double value)
{
	return std::isfinite(value) ? Out(value) : Out(nullptr);
}

Out IntervalOf(const Interval &interval)
{
	return interval.known ? Out{JsonNumber(interval.low), JsonNumber(interval.high)} : Out(nullptr);
}

const char *UnitName(Unit unit)
{
	static const char *const names[] = {"ns", "per_second", "seconds", "count", "bytes"};
	return names[static_cast<size_t>(unit)];
}

Out DifferenceOf(const Difference &d)
{
	Out out = {{"name", d.name},
		   {"unit", UnitName(d.unit)},
		   {"a", d.a},
		   {"b", d.b},
		   {"ratio", JsonNumber(d.ratio)},
		   {"ratio_interval", IntervalOf(d.ratio_interval)},
		   {"change", d.change},
		   {"change_interval", IntervalOf(d.change_interval)},
		   {"p", d.p}};
	if (d.judged) {
		out["holm_p"] = d.holm_p;
		out["verdict"] = VerdictName(d.verdict);
	}
	if (!d.sentence.empty())
		out["sentence"] = d.sentence;
	for (const CauseChange &cause : d.causes)
		out["causes"].push_back({{"cause", CauseName(cause.cause)},
					 {"a_ns", cause.a_ns},
					 {"b_ns", cause.b_ns},
					 {"change_ns", cause.change_ns()}});
	return out;
}

Out DifferencesOf(const std::vector<Difference> &differences)
{
	Out out = Out::array();
	for (const Difference &d : differences)
		out.push_back(DifferenceOf(d));
	return out;
}

Out JsonEpisodes(const EpisodeSum &sum)
{
	return {{"count", sum.count},
		{"requests", sum.requests},
		{"worst_ns", sum.worst_ns},
		{"longest_ns", sum.longest_ns},
		{"request_seconds", sum.request_seconds}};
}

Out SideOf(const ComparedSide &side)
{
	Out runs = Out::array();
	for (const RunSample &run : side.runs) {
		Out one = {{"path", run.path},	 {"requests", run.requests}, {"errors", run.errors},
			   {"drops", run.drops}, {"seconds", run.seconds},   {"rate", run.rate}};
		for (const NamedLatency &n : kLatencies)
			one[std::string(n.name) + "_ns"] = run.latencies.*n.value;
		one["notes"] = run.notes;
		runs.push_back(one);
	}
	return {{"given", side.given}, {"runs", runs}};
}

} // namespace

std::string ComparisonJson(const Comparison &c)
{
	Out facts = Out::array(), episodes = Out::array();
	for (const FactChange &f : c.facts)
		facts.push_back({{"group", f.group}, {"name", f.name}, {"a", f.a}, {"b", f.b}});
	for (const EpisodeChange &e : c.episodes)
		episodes.push_back({{"cause", CauseName(e.cause)},
				    {"a", JsonEpisodes(e.a)},
				    {"b", JsonEpisodes(e.b)},
				    {"per_run", DifferenceOf(e.per_run)}});
	Out out = {{"format", 1},
		   {"verdict", VerdictName(c.verdict)},
		   {"reason", c.reason},
		   {"pairs", c.a.runs.size()},
		   {"advisory", c.advisory},
		   {"allowed", c.allowed},
		   {"noise", c.noise},
		   {"excluded", c.excluded},
		   {"slow_ns", c.slow_ns},
		   {"a", SideOf(c.a)},
		   {"b", SideOf(c.b)},
		   {"differs", facts},
		   {"changes", c.changes},
		   {"percentiles", DifferencesOf(c.percentiles)},
		   {"throughput", DifferenceOf(c.throughput)},
		   {"causes", DifferencesOf(c.causes)},
		   {"stalled", DifferencesOf(c.stalled)},
		   {"episodes", episodes},
		   {"fork_seconds", DifferenceOf(c.fork_seconds)},
		   {"fork_longest", DifferenceOf(c.fork_longest)},
		   {"rss", DifferenceOf(c.rss)},
		   {"notes", c.notes}};
	return out.dump(2, ' ', false, Out::error_handler_t::replace) + "\n";
}

} // namespace forktail::analysis::compare
