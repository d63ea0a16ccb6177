// SPDX-License-Identifier: MIT
// A comparison as text, JSON, JUnit XML and Markdown.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "analysis/compare.h"
#include "analysis/text.h"
#include "common/format.h"
#include "comparison.h"

namespace forktail::analysis::compare
{

// A comparison for a terminal: the verdict, other differences, the changes as sentences, then tables.

namespace
{

// Columns as wide as their longest cell; numbers are right-aligned.
std::string Columns(const ComparisonTable &table, bool numbers)
{
	std::vector<size_t> widths(table.head.size());
	auto see = [&](const std::vector<std::string> &row) {
		for (size_t i = 0; i < row.size(); i++)
			widths[i] = std::max(widths[i], row[i].size());
	};
	see(table.head);
	for (const auto &row : table.rows)
		see(row);
	std::string out;
	auto add = [&](const std::vector<std::string> &row) {
		std::string line = " ";
		for (size_t i = 0; i < row.size(); i++) {
			std::string space(widths[i] - row[i].size(), ' ');
			bool right = numbers && i > 0 && i + 1 < row.size();
			line += " " + (right ? space + row[i] : row[i] + space) + (widths[i] ? " " : "");
		}
		out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
	};
	add(table.head);
	for (const auto &row : table.rows)
		add(row);
	return out;
}

} // namespace

std::string ComparisonText(const Comparison &c, bool colour)
{
	auto strong = [&](const std::string &text) { return colour ? "\033[1m" + text + "\033[0m" : text; };
	std::string out = strong(std::string(VerdictName(c.verdict)) + ": ") + c.reason + ".\n";
	out += "  A: " + SideText(c.a) + "\n  B: " + SideText(c.b) + "\n";
	if (ComparisonTable facts = FactsOf(c); !facts.rows.empty())
		out += "\n" + strong(facts.title) + "\n" + Columns(facts, false);
	if (!c.changes.empty())
		out += "\n" + strong("What changed") + "\n";
	for (const std::string &change : c.changes)
		out += "  " + change + "\n";
	for (const ComparisonTable &table : TablesOf(c))
		out += "\n" + strong(table.title) + "\n" + Columns(table, true);
	for (const std::string &note : c.notes)
		out += "\nnote: " + note + "\n";
	return out;
}

// A comparison as JSON; docs/reference/diff-and-gate.md lists its members. JSON has no infinity: such a bound
// is null.

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

// A comparison as a JUnit test suite, with a test for each judged percentile. Inconclusive is an error, not a
// failure; one pair alone is skipped.

std::string ComparisonJunit(const Comparison &c)
{
	JunitSuite suite;
	suite.name = "forktail diff " + c.a.given + " " + c.b.given;
	for (const Difference &d : c.percentiles) {
		if (!d.judged)
			continue;
		JunitCase one;
		one.name = d.name + " is no worse";
		one.classname = "forktail.diff";
		one.outcome = d.verdict == Verdict::Worse	   ? JunitCase::kFailed
			      : d.verdict == Verdict::Inconclusive ? JunitCase::kError
			      : d.verdict == Verdict::Advisory	   ? JunitCase::kSkipped
								   : JunitCase::kPassed;
		one.message = d.sentence.empty() ? c.reason : d.sentence;
		one.output = c.reason;
		suite.cases.push_back(one);
	}
	return JunitXml(suite);
}

// A comparison as a pull-request comment. Names of runs and settings are untrusted text: they must not become
// markup.

namespace
{

std::string Escaped(const std::string &text)
{
	std::string out;
	for (char c : text) {
		if (c == '<' || c == '>' || c == '&') {
			out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
			continue;
		}
		if (std::string("\\`*_[]()#|!~@").find(c) != std::string::npos)
			out += '\\';
		out += c == '\n' ? ' ' : c;
	}
	return out;
}

std::string Row(const std::vector<std::string> &cells)
{
	std::string out = "|";
	for (const std::string &cell : cells)
		out += " " + Escaped(cell) + " |";
	return out + "\n";
}

std::string TableText(const ComparisonTable &table)
{
	std::string out = Row(table.head) + "|";
	for (size_t i = 0; i < table.head.size(); i++)
		out += i ? "---:|" : "---|";
	out += "\n";
	for (const auto &row : table.rows)
		out += Row(row);
	return out;
}

} // namespace

std::string ComparisonMarkdown(const Comparison &c)
{
	std::string out = "**forktail diff: " + std::string(VerdictName(c.verdict)) + "** - " +
			  Escaped(c.reason) + ".\n\nA: " + Escaped(SideText(c.a)) +
			  "  \nB: " + Escaped(SideText(c.b)) + "\n";
	if (ComparisonTable facts = FactsOf(c); !facts.rows.empty())
		out += "\n**" + facts.title + "**\n\n" + TableText(facts);
	if (!c.changes.empty())
		out += "\n";
	for (const std::string &change : c.changes)
		out += "- " + Escaped(change) + "\n";
	bool first = true;
	for (const ComparisonTable &table : TablesOf(c)) {
		std::string text = TableText(table);
		out += first ? "\n" + text
			     : "\n<details><summary>" + Escaped(table.title) + "</summary>\n\n" + text +
				   "\n</details>\n";
		first = false;
	}
	for (const std::string &note : c.notes)
		out += "\nNote: " + Escaped(note) + "\n";
	return out;
}

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

// "Because" is used only if a rule knows what lengthens the cause, and that changed in the same direction.
// Other changed settings that are related to the cause follow "with".

const char *VerdictName(Verdict verdict)
{
	static const char *const names[] = {"same", "better", "worse", "inconclusive", "advisory"};
	return names[static_cast<size_t>(verdict)];
}

std::string ValueText(Unit unit, double value)
{
	double size = std::abs(value);
	char text[48];
	switch (unit) {
	case Unit::Nanoseconds:
		return common::FormatDuration(static_cast<uint64_t>(size + 0.5));
	case Unit::Seconds:
		return common::FormatDuration(static_cast<uint64_t>(size * 1e9 + 0.5));
	case Unit::Bytes:
		return common::FormatBytes(static_cast<uint64_t>(size + 0.5));
	case Unit::PerSecond:
		return common::FormatCount(static_cast<uint64_t>(size + 0.5)) + "/s";
	case Unit::Count:
		break;
	}
	if (size == std::floor(size))
		return common::FormatCount(static_cast<uint64_t>(size));
	snprintf(text, sizeof text, "%.1f", size);
	return text;
}

std::string ChangeText(Unit unit, double change)
{
	if (std::isinf(change))
		return change > 0 ? "unbounded" : "-unbounded";
	return (change < 0 ? "-" : "+") + ValueText(unit, change);
}

std::string IntervalText(const Difference &d)
{
	if (!d.change_interval.known)
		return "";
	return " [" + ChangeText(d.unit, d.change_interval.low) + ", " +
	       ChangeText(d.unit, d.change_interval.high) + "]";
}

std::string RatioText(const Difference &d)
{
	if (!std::isfinite(d.ratio))
		return "";
	char text[32];
	snprintf(text, sizeof text, "%+.1f %%", (d.ratio - 1) * 100);
	return text;
}

namespace
{

constexpr double kMuchOfIt = 0.15; // share of a percentile's change from which a cause is named
constexpr size_t kMostNamed = 3;
constexpr double kGrown = 1.05;

// A setting that may be related to a cause.
struct Lead {
	Cause cause;
	const char *setting;
};
const Lead kLeads[] = {
    {Cause::Fork, "save"},
    {Cause::Fork, "thp"},
    {Cause::CowCopy, "thp"},
    {Cause::PageZero, "thp"},
    {Cause::Fsync, "appendfsync"},
    {Cause::Fsync, "appendonly"},
    {Cause::FileWrite, "appendonly"},
    {Cause::FileWrite, "appendfsync"},
    {Cause::PageIn, "maxmemory"},
    {Cause::Reclaim, "maxmemory"},
    {Cause::ServerBusy, "tls"},
    {Cause::ServerBusy, "value_bytes"},
    {Cause::ServerBusy, "pipeline"},
    {Cause::ServerBusy, "rate"},
    {Cause::ServerBusy, "redis's version"},
    {Cause::RunQueue, "CPUs"},
};

// "because RSS 1.10 GB -> 2.30 GB", "with appendfsync everysec -> always", or "".
std::string ReasonFor(const Comparison &c, Cause cause, bool more)
{
	bool by_memory = cause == Cause::Fork || cause == Cause::CowCopy || cause == Cause::PageIn;
	double grown = c.rss.a > 0 ? c.rss.b / c.rss.a : 1;
	if (by_memory && (more ? grown > kGrown : grown < 1 / kGrown))
		return "because RSS " + ValueText(Unit::Bytes, c.rss.a) + " -> " +
		       ValueText(Unit::Bytes, c.rss.b);
	for (const Lead &lead : kLeads)
		for (const FactChange &fact : c.facts)
			if (lead.cause == cause && fact.name == lead.setting)
				return "with " + fact.name + " " + (fact.a.empty() ? "none" : fact.a) +
				       " -> " + (fact.b.empty() ? "none" : fact.b);
	return "";
}

// ": fork +11.9 ms, because RSS 1.10 GB -> 2.30 GB"
std::string CausesText(const Comparison &c, const Difference &d)
{
	std::string text;
	size_t named = 0;
	for (const CauseChange &cause : d.causes) {
		double change = cause.change_ns();
		if (change * d.change <= 0 || std::abs(change) < kMuchOfIt * std::abs(d.change) ||
		    named++ >= kMostNamed)
			continue;
		text += (text.empty() ? ": " : "; ") + std::string(CauseName(cause.cause)) + " " +
			ChangeText(Unit::Nanoseconds, change);
		if (std::string why = ReasonFor(c, cause.cause, change > 0); !why.empty())
			text += ", " + why;
	}
	return text;
}

std::string Sentence(const Comparison &c, const Difference &d)
{
	if (d.a == d.b)
		return "";
	std::string text = d.name + " " + ChangeText(d.unit, d.change) + IntervalText(d);
	return text + CausesText(c, d);
}

bool IsSignificant(const Difference &d)
{
	return d.change_interval.known && (d.change_interval.low > 0 || d.change_interval.high < 0);
}

// With few runs there is no interval: then large changes are reported.
bool IsLarge(const Comparison &c, const Difference &d)
{
	return d.judged && !d.change_interval.known && std::abs(d.ratio - 1) > c.excluded;
}

std::string Percent(double share)
{
	char text[32];
	snprintf(text, sizeof text, "%.3g %%", share * 100);
	return text;
}

std::string Names(const Comparison &c, Verdict verdict)
{
	std::string names;
	for (const Difference &d : c.percentiles)
		if (d.judged && d.verdict == verdict)
			names += (names.empty() ? "" : ", ") + d.name;
	return names;
}

std::string ReasonOf(const Comparison &c)
{
	const double allowed = std::max(c.allowed, c.noise);
	const std::string pairs = common::Plural(c.a.runs.size(), "pair", "pairs");
	switch (c.verdict) {
	case Verdict::Worse:
		return "B is more than " + Percent(allowed) + " worse at " + Names(c, Verdict::Worse) + " (" +
		       pairs + ", Holm p < 0.05)";
	case Verdict::Better:
		return "B is better at " + Names(c, Verdict::Better) +
		       ", and no judged percentile is worse (" + pairs + ")";
	case Verdict::Same:
		return "no judged percentile is more than " + Percent(allowed) +
		       " worse, and a regression of " + Percent(c.excluded) + " is ruled out (" + pairs + ")";
	case Verdict::Advisory:
		return "only one pair of runs: the intervals show the scatter within these runs, not between "
		       "runs. A verdict needs at least 6 pairs (forktail lab pairs)";
	case Verdict::Inconclusive:
		break;
	}
	if (c.a.runs.size() < kLeastPairs)
		return pairs + " cannot decide: a verdict needs at least 6 pairs, better 8";
	return "the runs cannot decide: for " + Names(c, Verdict::Inconclusive) +
	       " they neither show a regression above " + Percent(allowed) + " nor rule out one of " +
	       Percent(c.excluded) + " (" + pairs + "). Use more pairs, longer runs or a quieter host";
}

} // namespace

void PutIntoWords(Comparison *c)
{
	std::vector<Difference *> all;
	for (Difference &d : c->percentiles)
		all.push_back(&d);
	all.push_back(&c->throughput);
	for (Difference *d : all)
		d->sentence = Sentence(*c, *d);
	for (auto d = c->percentiles.rbegin(); d != c->percentiles.rend(); ++d)
		if (!d->sentence.empty() &&
		    (IsSignificant(*d) || d->verdict == Verdict::Worse || IsLarge(*c, *d)))
			c->changes.push_back(d->sentence);
	if (IsSignificant(c->throughput))
		c->changes.push_back(c->throughput.sentence);
	for (Difference &d : c->causes) {
		d.sentence =
		    "slow requests' time in " + d.name + " " + ChangeText(d.unit, d.change) + IntervalText(d);
		Cause cause;
		if (CauseByName(d.name.c_str(), &cause))
			if (std::string why = ReasonFor(*c, cause, d.change > 0); !why.empty())
				d.sentence += ", " + why;
		if (IsSignificant(d) && c->changes.size() < 8)
			c->changes.push_back(d.sentence);
	}
	c->reason = ReasonOf(*c);
}

} // namespace forktail::analysis::compare
