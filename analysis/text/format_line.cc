// SPDX-License-Identifier: MIT
// The line of --format, and the figures that have names.
//
// Replaces the placeholders of --format. A duration is "39.0 ms"; if the name ends with a unit, a plain
// number in that unit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "analysis/text.h"
#include "common/format.h"
#include "sentences.h"

namespace forktail::analysis
{

namespace
{

std::optional<std::string> Value(const Explanation &e, const std::string &name)
{
	static const struct {
		const char *ending;
		double ns;
		int digits;
	} units[] = {{"_ns", 1, 0}, {"_us", 1e3, 3}, {"_ms", 1e6, 6}, {"_s", 1e9, 9}};
	for (const auto &unit : units) {
		if (!name.ends_with(unit.ending))
			continue;
		const auto time = FindFigure(e, name.substr(0, name.size() - strlen(unit.ending)));
		if (time && time->unit == FigureUnit::kNs)
			return Format("%.*f", unit.digits, std::floor(time->value) / unit.ns);
	}
	if (const auto figure = FindFigure(e, name))
		switch (figure->unit) {
		case FigureUnit::kNs:
			return common::FormatDuration(static_cast<uint64_t>(figure->value));
		case FigureUnit::kCount:
			return Format("%.0f", figure->value);
		case FigureUnit::kShare:
			return Format("%.6f", figure->value);
		case FigureUnit::kPerSecond:
			return Format("%.1f", figure->value);
		}
	if (name == "run")
		return e.run.path;
	if (name == "start")
		return ClockText(e, e.first_ns);
	if (name == "cause")
		return e.lead.kind == Lead::Kind::None		 ? "none"
		       : e.lead.kind == Lead::Kind::Unattributed ? CauseName(Cause::Unknown)
		       : e.lead.late_first			 ? CauseName(Cause::ClientLate)
								 : CauseName(e.lead.causes[0]);
	return {};
}

// False: *error is set. `value` returns the text for a placeholder, or nothing for an unknown name.
bool Fill(const std::string &format,
	  const std::function<std::optional<std::string>(const std::string &)> &value, std::string *out,
	  std::string *error)
{
	for (size_t i = 0; i < format.size(); i++) {
		const char c = format[i], next = i + 1 < format.size() ? format[i + 1] : 0;
		if ((c == '{' || c == '}') && next == c) {
			*out += c;
			i++;
		} else if (c == '\\' && (next == 'n' || next == 't' || next == '\\')) {
			*out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
			i++;
		} else if (c == '{') {
			const size_t end = format.find('}', i);
			if (end == std::string::npos) {
				*error = "--format: { without }. Write {{ for a brace.";
				return false;
			}
			const std::string name = format.substr(i + 1, end - i - 1);
			const std::optional<std::string> text = value(name);
			if (!text) {
				*error = "--format: unknown placeholder {" + name +
					 "}. docs/reference/explain.md lists them.";
				return false;
			}
			*out += *text;
			i = end;
		} else if (c == '}') {
			*error = "--format: } without {. Write }} for a brace.";
			return false;
		} else
			*out += c;
	}
	return true;
}

} // namespace

bool CheckFormat(const std::string &format, std::string *error)
{
	const Run run;
	const Explanation none(run);
	std::string out;
	return Fill(
	    format, [&](const std::string &name) { return Value(none, name); }, &out, error);
}

std::string FormatLine(const Explanation &e, const std::string &format)
{
	std::string out, error;
	Fill(
	    format, [&](const std::string &name) { return Value(e, name); }, &out, &error);
	return out + "\n";
}

// Tables from names to figures of a run and of a cause.

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
