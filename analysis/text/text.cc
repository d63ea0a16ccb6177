// SPDX-License-Identifier: MIT
// Writes the sections one after the other, with one row or sentence per line.
#include "text.h"

#include <algorithm>

#include "analysis/blame/hops.h"
#include "common/format/units.h"
#include "screen.h"
#include "sentences.h"
#include "server_tables.h"

namespace forktail::analysis
{

namespace
{

constexpr double kSmallShare = 0.001; // smaller causes are counted, not listed

struct Writer {
	const Explanation &e;
	const Style &style;
	std::string out = {};

	std::string Strong(const std::string &text) const { return style.Strong(text); }
	size_t columns() const { return style.columns; }
	void Line(const std::string &text) { out += Wrap(text, 0, 0, columns()); }
};

void WriteCauses(Writer *w)
{
	const Blame &b = w->e.blame;
	if (b.causes.empty())
		return;
	size_t width = 13;
	for (const CauseRow &row : b.causes)
		width = std::max(width, std::string(CauseName(row.cause)).size());
	w->out += "\n" +
		  w->Strong(Format("%-*s %10s %10s %8s %15s %13s", static_cast<int>(width), "cause",
				   b.from_iterations ? "iterations" : "requests", "time", "share",
				   "p99.9 without", "max without")) +
		  "\n";
	size_t small = 0;
	bool copies = false;
	for (const CauseRow &row : b.causes) {
		if (row.share < kSmallShare && row.cause != Cause::Unknown) {
			small++;
			continue;
		}
		copies |= row.cause == Cause::CowCopy;
		bool what_if = row.cause != Cause::Unknown;
		w->out += Format("%-*s %10s %10s %8s %15s %13s\n", static_cast<int>(width),
				 CauseName(row.cause), common::FormatCount(row.requests).c_str(),
				 common::FormatDuration(row.total_ns()).c_str(),
				 common::FormatPercent(row.share).c_str(),
				 what_if ? common::FormatDuration(row.without.p99_9).c_str() : "-",
				 what_if ? common::FormatDuration(row.without.max).c_str() : "-");
	}
	if (small)
		w->out +=
		    Format("(%s below %s each)\n", common::Plural(small, "more cause", "more causes").c_str(),
			   common::FormatPercent(kSmallShare).c_str());
	if (copies)
		w->Line("The \"without\" values of cow-copy are slightly too high: the cost of a copy "
			"outside its page fault counts as server-busy.");
}

// Time by hop, if requests passed more than one process.
void WriteHops(Writer *w)
{
	const Blame &b = w->e.blame;
	constexpr size_t rows = 10, causes_shown = 3;
	constexpr double worth_listing = 0.01;
	if (b.hops.size() < 2 || b.slow.empty())
		return;
	std::vector<std::string> names, roles;
	size_t width = 13;
	uint64_t at_hops = 0;
	for (const HopRow &row : b.hops) {
		HopName name = HopNameOf(w->e.run, w->e.timelines, row.hop, b.from_iterations);
		names.push_back(name.text());
		roles.push_back(RoleOf(row, name));
		width = std::max(width, names.back().size());
		at_hops += row.time_ns;
	}
	w->out +=
	    "\n" +
	    w->Strong(Format("%-*s %-8s %10s %10s %8s   %s", static_cast<int>(width), "hop", "role",
			     b.from_iterations ? "iterations" : "requests", "time", "share", "causes")) +
	    "\n";
	for (size_t i = 0; i < std::min(rows, b.hops.size()); i++) {
		const HopRow &row = b.hops[i];
		std::string line = Format(
		    "%-*s %-8s %10s %10s %8s   ", static_cast<int>(width), names[i].c_str(), roles[i].c_str(),
		    common::FormatCount(row.requests).c_str(), common::FormatDuration(row.time_ns).c_str(),
		    common::FormatPercent(row.share).c_str());
		std::string causes = row.causes.empty() ? "-" : "";
		for (size_t c = 0; c < row.causes.size() && c < causes_shown; c++) {
			double share = static_cast<double>(row.causes[c].time_ns) /
				       static_cast<double>(std::max<uint64_t>(row.time_ns, 1));
			std::string one = std::string(c ? ", " : "") + CauseName(row.causes[c].cause) + " " +
					  common::FormatShare(share);
			if (c && (share < worth_listing ||
				  line.size() + causes.size() + one.size() > w->columns()))
				break;
			causes += one;
		}
		w->out += line + causes + "\n";
	}
	if (b.hops.size() > rows)
		w->out += "(" + common::Plural(b.hops.size() - rows, "more hop", "more hops") + ")\n";
	uint64_t between = b.slow_ns - at_hops;
	w->out += Format("%-*s %-8s %10s %10s %8s\n", static_cast<int>(width), "(no hop)", "-", "-",
			 common::FormatDuration(between).c_str(),
			 common::FormatPercent(static_cast<double>(between) /
					       static_cast<double>(std::max<uint64_t>(b.slow_ns, 1)))
			     .c_str());
}

void WriteEpisodes(Writer *w, size_t episodes)
{
	std::vector<uint32_t> worst = WorstEpisodes(w->e.episodes, episodes);
	if (worst.empty())
		return;
	w->out += "\n" +
		  w->Strong(worst.size() < w->e.episodes.size()
				? "The " + common::Plural(worst.size(), "worst episode", "worst episodes")
				: std::string("Episodes, worst first")) +
		  "\n";
	size_t number = 0;
	for (uint32_t index : worst) {
		const Episode &e = w->e.episodes[index];
		w->out += Wrap(EpisodeHead(w->e, index, ++number), 0, 3, w->columns());
		for (const std::string &sentence : e.evidence)
			w->out += "   " + Wrap(sentence, 3, 5, w->columns());
	}
}

// On-CPU time of the serving threads by activity.
void WriteOwnCode(Writer *w)
{
	constexpr size_t rows = 10;
	constexpr double worth_listing = 0.01;
	const OwnCode &own = w->e.own_code;
	if (own.samples == 0)
		return;
	size_t width = 13;
	for (size_t i = 0; i < std::min(rows, own.activities.size()); i++)
		width = std::max(width, own.activities[i].name.size());
	w->out += "\n" +
		  w->Strong(Format("%-*s %8s %10s %8s   %s", static_cast<int>(width), "on-CPU time",
				   "samples", "time", "share", "stack")) +
		  "\n";
	size_t shown = 0;
	for (const ActivityTime &a : own.activities) {
		if (shown == rows || (shown && a.share < worth_listing))
			break;
		shown++;
		std::string row =
		    Format("%-*s %8s %10s %8s   ", static_cast<int>(width), a.name.c_str(),
			   common::FormatCount(a.samples).c_str(), common::FormatDuration(a.time_ns).c_str(),
			   common::FormatPercent(a.share).c_str());
		std::string seen = a.stack; // whole names only: callers that do not fit are left out
		while (row.size() + seen.size() > w->columns() && !seen.empty()) {
			size_t last = seen.rfind(" < ");
			seen.erase(last == std::string::npos ? 0 : last);
		}
		w->out += row + seen + "\n";
	}
	if (shown < own.activities.size())
		w->out += "(" +
			  common::Plural(own.activities.size() - shown, "more activity", "more activities") +
			  ")\n";
}

} // namespace

std::string ExplainText(const Explanation &e, const Style &style, size_t episodes)
{
	Writer w = {e, style};
	w.Line(RequestsText(w.e));
	if (const std::string seen = SeenText(w.e); !seen.empty())
		w.Line(seen);
	if (w.e.blame.count == w.e.blame.errors)
		w.Line("No request was answered.");
	else
		w.Line(PercentilesText(w.e.blame.latencies));
	if (w.e.blame.arrivals.known)
		w.Line(ArrivalsText(w.e));
	w.out += "\n";
	w.Line(SlowText(w.e));
	if (const std::string marks = MarksText(w.e); !marks.empty())
		w.Line(marks);
	if (const std::string split = NetworkSplitText(w.e); !split.empty())
		w.Line(split);
	WriteCauses(&w);
	WriteHops(&w);
	WriteEpisodes(&w, episodes);
	WriteOwnCode(&w);
	w.out += ServerCommandsTable(e, style) + ServerThreadsTable(e, style);
	w.out += "\n";
	if (std::string clock = ClockText(w.e, w.e.zero_ns); !clock.empty())
		w.Line("+0.000 s is " + clock + ".");
	for (const std::vector<std::string> &texts :
	     {AccountTexts(w.e), DropTexts(w.e), {CostText(w.e)}, NoteTexts(w.e)})
		for (const std::string &text : texts)
			if (!text.empty())
				w.Line(text);
	return w.out;
}

} // namespace forktail::analysis
