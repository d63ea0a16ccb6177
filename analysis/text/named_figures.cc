// SPDX-License-Identifier: MIT
// Tables from names to figures of a run and of a cause.
#include "named_figures.h"

#include <algorithm>
#include <cmath>

namespace forktail::analysis
{

namespace
{

constexpr FigureUnit kNs = FigureUnit::kNs, kCount = FigureUnit::kCount, kShare = FigureUnit::kShare;

double AsDouble(uint64_t value)
{
	return static_cast<double>(value);
}

constexpr struct {
	const char *name;
	FigureUnit unit;
	double (*value)(const Explanation &);
} kOfRun[] = {
    {"mean", kNs, [](const Explanation &e) { return e.blame.latencies.mean; }},
    {"threshold", kNs, [](const Explanation &e) { return AsDouble(e.blame.threshold_ns); }},
    {"duration", kNs, [](const Explanation &e) { return AsDouble(e.measured_ns); }},
    {"slow.total", kNs, [](const Explanation &e) { return AsDouble(e.blame.slow_ns); }},
    {"requests", kCount, [](const Explanation &e) { return AsDouble(e.blame.count); }},
    {"errors", kCount, [](const Explanation &e) { return AsDouble(e.blame.errors); }},
    {"slow", kCount, [](const Explanation &e) { return AsDouble(e.blame.slow_count); }},
    {"episodes", kCount, [](const Explanation &e) { return AsDouble(e.episodes.size()); }},
    {"drops", kCount, [](const Explanation &e) { return AsDouble(DropCount(e.run)); }},
    {"explained", kShare, [](const Explanation &e) { return 1 - e.blame.RowOf(Cause::Unknown).share; }},
    {"rate", FigureUnit::kPerSecond, [](const Explanation &e) {
	     return e.measured_ns ? AsDouble(e.blame.count) * 1e9 / AsDouble(e.measured_ns) : 0;
     }}};

constexpr struct {
	const char *name;
	FigureUnit unit;
	double (*value)(const CauseRow &);
} kOfCause[] = {{"total", kNs, [](const CauseRow &row) { return AsDouble(row.total_ns()); }},
		{"direct", kNs, [](const CauseRow &row) { return AsDouble(row.direct_ns); }},
		{"queued", kNs, [](const CauseRow &row) { return AsDouble(row.queued_ns); }},
		{"share", kShare, [](const CauseRow &row) { return row.share; }},
		{"requests", kCount, [](const CauseRow &row) { return AsDouble(row.requests); }}};

const NamedLatency *FindLatency(const std::string &name)
{
	const auto found = std::find_if(std::begin(kLatencies), std::end(kLatencies),
					[&](const NamedLatency &n) { return name == n.name; });
	return found == std::end(kLatencies) ? nullptr : found;
}

} // namespace

std::optional<NamedFigure> FindFigure(const Explanation &e, const std::string &name)
{
	if (const NamedLatency *latency = FindLatency(name))
		return NamedFigure{kNs, AsDouble(e.blame.latencies.*latency->value)};
	for (const auto &figure : kOfRun)
		if (name == figure.name)
			return NamedFigure{figure.unit, figure.value(e)};
	const size_t dot = name.find('.');
	Cause cause;
	if (dot == std::string::npos || !CauseByName(name.substr(0, dot).c_str(), &cause))
		return {};
	return FindFigure(e, cause, name.substr(dot + 1));
}

std::optional<NamedFigure> FindFigure(const Explanation &e, Cause cause, const std::string &name)
{
	const CauseRow &row = e.blame.RowOf(cause);
	for (const auto &figure : kOfCause)
		if (name == figure.name)
			return NamedFigure{figure.unit, figure.value(row)};
	if (name == "episodes")
		return NamedFigure{
		    kCount,
		    AsDouble(std::count_if(e.episodes.begin(), e.episodes.end(), [&](const Episode &episode) {
			    return !episode.causes.empty() && episode.causes[0].cause == cause;
		    }))};
	const NamedLatency *latency = name.rfind("without.", 0) == 0 ? FindLatency(name.substr(8)) : nullptr;
	if (!latency || latency->percentile < kLowestWithout)
		return {};
	// A cause that did not occur changes no percentile.
	return NamedFigure{kNs, AsDouble((row.requests ? row.without : e.blame.latencies).*latency->value)};
}

} // namespace forktail::analysis
