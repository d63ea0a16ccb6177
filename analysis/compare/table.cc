// SPDX-License-Identifier: MIT
// See table.h.
#include "table.h"

#include <algorithm>
#include <cmath>

#include "common/format/units.h"
#include "sentences.h"

namespace forktail::analysis::compare
{

namespace
{

constexpr size_t kMostRows = 8;	 // of causes
constexpr double kSmall = 0.001; // share of a table's total below which a row is omitted

std::vector<std::string> RowOf(const Difference &d, const std::string &name)
{
	std::string interval = IntervalText(d), verdict = d.judged ? VerdictName(d.verdict) : "";
	return {name,
		ValueText(d.unit, d.a),
		ValueText(d.unit, d.b),
		ChangeText(d.unit, d.change),
		interval.empty() ? "unknown" : interval.substr(1),
		RatioText(d),
		verdict};
}

std::vector<std::string> Head(const char *first)
{
	return {first, "A", "B", "change", "95 % interval", "", "verdict"};
}

ComparisonTable SumsOf(const char *title, const char *first, const std::vector<Difference> &sums)
{
	ComparisonTable table = {title, Head(first), {}};
	double all = 0;
	for (const Difference &d : sums)
		all += d.a + d.b;
	for (const Difference &d : sums)
		if (table.rows.size() < kMostRows && std::max(d.a, d.b) > kSmall * all)
			table.rows.push_back(RowOf(d, d.name));
	return table;
}

ComparisonTable EpisodesTable(const Comparison &c)
{
	ComparisonTable table = {"Episodes per run by main cause", Head("cause"), {}};
	for (const EpisodeChange &e : c.episodes)
		if (table.rows.size() < kMostRows)
			table.rows.push_back(RowOf(e.per_run, CauseName(e.cause) + std::string(", worst ") +
								  common::FormatDuration(e.a.worst_ns) +
								  " | " +
								  common::FormatDuration(e.b.worst_ns)));
	return table;
}

} // namespace

std::vector<ComparisonTable> TablesOf(const Comparison &c)
{
	ComparisonTable latency = {"Latency and throughput", Head(""), {}};
	for (const Difference &d : c.percentiles)
		latency.rows.push_back(RowOf(d, d.name));
	latency.rows.push_back(RowOf(c.throughput, c.throughput.name));
	ComparisonTable server = {"Server", Head(""), {}};
	for (const Difference *d : {&c.fork_seconds, &c.fork_longest, &c.rss})
		if (d->a > 0 || d->b > 0)
			server.rows.push_back(RowOf(*d, d->name));
	std::vector<ComparisonTable> all = {
	    latency,
	    SumsOf(("Slow requests' time by cause (slow: " + common::FormatDuration(c.slow_ns) + " or more)")
		       .c_str(),
		   "cause", c.causes),
	    SumsOf("Serving threads' stalled time by cause", "cause", c.stalled), EpisodesTable(c), server};
	std::erase_if(all, [](const ComparisonTable &t) { return t.rows.empty(); });
	return all;
}

ComparisonTable FactsOf(const Comparison &c)
{
	ComparisonTable table = {"Other differences", {"", "A", "B"}, {}};
	for (const FactChange &fact : c.facts)
		table.rows.push_back({fact.group + ": " + fact.name, fact.a.empty() ? "unknown" : fact.a,
				      fact.b.empty() ? "unknown" : fact.b});
	return table;
}

std::string SideText(const ComparedSide &side)
{
	return side.given +
	       (side.runs.size() > 1 ? ", " + common::Plural(side.runs.size(), "run", "runs") : "");
}

} // namespace forktail::analysis::compare
