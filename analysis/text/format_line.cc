// SPDX-License-Identifier: MIT
// See format_line.h. Durations are "39.0 ms" as everywhere, or plain numbers of the unit that the name ends
// with.
#include "format_line.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "common/format/units.h"
#include "sentences.h"

namespace forktail::analysis
{

namespace
{

const CauseRow &RowOf(const Explanation &e, Cause cause)
{
	static const CauseRow none = {};
	for (const CauseRow &row : e.blame.causes)
		if (row.cause == cause)
			return row;
	return none;
}

std::string Number(double value, int digits)
{
	return Format("%.*f", digits, value);
}

// "p99.9" and its kin, of latencies.
const uint64_t *PercentileIn(const std::string &name, const Latencies &l)
{
	return name == "p50"	  ? &l.p50
	       : name == "p90"	  ? &l.p90
	       : name == "p99"	  ? &l.p99
	       : name == "p99.9"  ? &l.p99_9
	       : name == "p99.99" ? &l.p99_99
	       : name == "max"	  ? &l.max
				  : nullptr;
}

// A value that is a duration.
std::optional<uint64_t> Duration(const Explanation &e, const std::string &name)
{
	if (const uint64_t *value = PercentileIn(name, e.blame.latencies))
		return *value;
	if (name == "mean")
		return static_cast<uint64_t>(e.blame.latencies.mean);
	if (name == "threshold")
		return e.blame.threshold_ns;
	if (name == "duration")
		return e.measured_ns;
	if (name == "slow.total")
		return e.blame.slow_ns;
	const size_t dot = name.find('.');
	Cause cause;
	if (dot == std::string::npos || !CauseByName(name.substr(0, dot).c_str(), &cause))
		return {};
	const CauseRow &row = RowOf(e, cause);
	const std::string what = name.substr(dot + 1);
	if (what == "total")
		return row.total_ns();
	if (what == "direct")
		return row.direct_ns;
	if (what == "queued")
		return row.queued_ns;
	if (what.rfind("without.", 0) != 0 || what == "without.p50" || what == "without.p90")
		return {};
	// Without a cause that was not there it is what it is.
	if (const uint64_t *value =
		PercentileIn(what.substr(8), row.requests ? row.without : e.blame.latencies))
		return *value;
	return {};
}

// Counts, shares and names.
std::optional<std::string> Other(const Explanation &e, const std::string &name)
{
	const Blame &b = e.blame;
	if (name == "run")
		return e.run.path;
	if (name == "start")
		return ClockText(e, e.first_ns);
	if (name == "requests")
		return std::to_string(b.count);
	if (name == "errors")
		return std::to_string(b.errors);
	if (name == "slow")
		return std::to_string(b.slow_count);
	if (name == "episodes")
		return std::to_string(e.episodes.size());
	if (name == "rate")
		return Number(e.measured_ns
				  ? static_cast<double>(b.count) * 1e9 / static_cast<double>(e.measured_ns)
				  : 0,
			      1);
	if (name == "cause")
		return b.causes.empty() ? "none" : CauseName(b.causes[0].cause);
	if (name == "explained")
		return Number(1 - RowOf(e, Cause::Unknown).share, 6);
	if (name == "drops") {
		uint64_t drops = 0;
		for (const ft_drop &d : e.run.drops)
			drops += d.count;
		return std::to_string(drops);
	}
	const size_t dot = name.find('.');
	Cause cause;
	if (dot == std::string::npos || !CauseByName(name.substr(0, dot).c_str(), &cause))
		return {};
	if (name.substr(dot + 1) == "requests")
		return std::to_string(RowOf(e, cause).requests);
	if (name.substr(dot + 1) == "share")
		return Number(RowOf(e, cause).share, 6);
	return {};
}

std::optional<std::string> Value(const Explanation &e, const std::string &name)
{
	static const struct {
		const char *ending;
		double ns;
		int digits;
	} units[] = {{"_ns", 1, 0}, {"_us", 1e3, 3}, {"_ms", 1e6, 6}, {"_s", 1e9, 9}};
	if (std::optional<uint64_t> ns = Duration(e, name))
		return common::FormatDuration(*ns);
	for (const auto &unit : units) {
		const std::string ending = unit.ending;
		if (name.size() <= ending.size() ||
		    name.compare(name.size() - ending.size(), ending.size(), ending) != 0)
			continue;
		if (std::optional<uint64_t> ns = Duration(e, name.substr(0, name.size() - ending.size())))
			return Number(static_cast<double>(*ns) / unit.ns, unit.digits);
	}
	return Other(e, name);
}

// False: *error. `value` gives what stands for a placeholder, or nothing if there is none of that name.
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
				*error = "--format has a { without its }; {{ is a brace that is printed";
				return false;
			}
			const std::string name = format.substr(i + 1, end - i - 1);
			const std::optional<std::string> text = value(name);
			if (!text) {
				*error =
				    "--format knows no {" + name + "}; docs/explain.md lists what it knows";
				return false;
			}
			*out += *text;
			i = end;
		} else if (c == '}') {
			*error = "--format has a } without its {; }} is a brace that is printed";
			return false;
		} else
			*out += c;
	}
	return true;
}

} // namespace

bool CheckFormat(const std::string &format, std::string *error)
{
	const Explanation none;
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

} // namespace forktail::analysis
