// SPDX-License-Identifier: MIT
// The whole explanation as text.
//
// Writes the sections one after the other, with one row or sentence per line.
#include "analysis/text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <iterator>
#include <vector>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "common/format.h"
#include "sentences.h"

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
		HopName name = HopNameOf(w->e.run, w->e.hop_threads, row.hop, b.from_iterations);
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
	const std::string answer = Wrap(AnswerText(e), 0, 0, w.columns());
	w.out += w.Strong(answer.substr(0, answer.find_last_not_of('\n') + 1)) + "\n";
	w.out += RemedyLines(e, 0, w.columns());
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
	if (!e.snapshots.all.empty())
		w.out += "\n" + w.Strong("Snapshots") + "\n" + SnapshotsView(e, style);
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

// Lays out text for a terminal: width, line breaks, bars and colours.

namespace
{

std::string Coloured(bool colour, const char *code, const std::string &text)
{
	return colour && !text.empty() ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
}

// The number of bytes of the UTF-8 character at `at`, at most up to the end of the text.
size_t LetterBytes(const std::string &text, size_t at)
{
	unsigned char first = static_cast<unsigned char>(text[at]);
	size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	return std::min(bytes, text.size() - at);
}

// By the locale's table; in an ASCII locale, one column per character.
size_t LetterWidth(const std::string &text, size_t at, size_t bytes)
{
	if (bytes == 1)
		return 1;
	uint32_t letter = static_cast<unsigned char>(text[at]) & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++)
		letter = letter << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
	int width = wcwidth(static_cast<wchar_t>(letter));
	return width < 0 ? 1 : static_cast<size_t>(width);
}

// The number of bytes that fit into `columns`.
size_t Fitting(const std::string &text, size_t columns)
{
	size_t at = 0;
	for (size_t width = 0; at < text.size();) {
		size_t bytes = LetterBytes(text, at);
		width += LetterWidth(text, at, bytes);
		if (width > columns)
			break;
		at += bytes;
	}
	return at;
}

} // namespace

std::string Style::Strong(const std::string &text) const
{
	return Coloured(colour, "1", text);
}
std::string Style::Dim(const std::string &text) const
{
	return Coloured(colour, "2", text);
}
std::string Style::Alarming(const std::string &text) const
{
	return Coloured(colour, "31", text);
}
std::string Style::Tinted(Cause cause, const std::string &text) const
{
	switch (InfoOf(cause).family) {
	case Family::Memory:
		return Coloured(colour, "31", text);
	case Family::Files:
		return Coloured(colour, "34", text);
	case Family::Cpu:
		return Coloured(colour, "33", text);
	case Family::Interrupts:
		return Coloured(colour, "35", text);
	default:
		return Coloured(colour, "36", text);
	}
}

std::string Format(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return text;
}

size_t DisplayWidth(const std::string &text)
{
	size_t width = 0;
	for (size_t at = 0; at < text.size();) {
		size_t bytes = LetterBytes(text, at);
		width += LetterWidth(text, at, bytes);
		at += bytes;
	}
	return width;
}

std::string Ellipsized(const std::string &text, size_t columns, const Style &style)
{
	if (DisplayWidth(text) <= columns)
		return text;
	const std::string end = style.Ellipsis();
	size_t width = DisplayWidth(end);
	if (columns < width)
		return text.substr(0, Fitting(text, columns));
	return text.substr(0, Fitting(text, columns - width)) + end;
}

std::string PadRight(const std::string &text, size_t columns)
{
	size_t width = DisplayWidth(text);
	return text + std::string(columns - std::min(width, columns), ' ');
}
std::string PadLeft(const std::string &text, size_t columns)
{
	size_t width = DisplayWidth(text);
	return std::string(columns - std::min(width, columns), ' ') + text;
}

namespace
{

// The end of the word that begins at `at`. A number and its unit are one word.
size_t EndOfWord(const std::string &text, size_t at)
{
	static constexpr const char *kUnits[] = {"%", "B", "GB", "MB", "kB", "ms", "ns", "s", "us"};
	const size_t end = std::min(text.find(' ', at), text.size());
	if (end == text.size() || text[at] < '0' || text[at] > '9')
		return end;
	const size_t next = std::min(text.find(' ', end + 1), text.size());
	std::string unit = text.substr(end + 1, next - end - 1);
	unit.erase(unit.find_last_not_of(".,:;)") + 1);
	const bool is_unit =
	    std::any_of(std::begin(kUnits), std::end(kUnits), [&](const char *u) { return unit == u; });
	return is_unit ? next : end;
}

} // namespace

std::string Wrap(const std::string &text, size_t first, size_t indent, size_t columns)
{
	std::string out;
	size_t column = first;
	bool starts_line = true;
	auto next_line = [&] {
		out += "\n" + std::string(indent, ' ');
		column = indent;
		starts_line = true;
	};
	for (size_t at = 0; at < text.size();) {
		size_t end = EndOfWord(text, at);
		std::string word = text.substr(at, end - at);
		size_t width = DisplayWidth(word);
		if (!starts_line && column + 1 + width > columns)
			next_line();
		if (!starts_line) {
			out += ' ';
			column++;
		}
		while (column + width > columns && columns > indent + 1) {
			size_t fits = std::max<size_t>(Fitting(word, columns - column), 1);
			if (fits >= word.size())
				break;
			out += word.substr(0, fits);
			word.erase(0, fits);
			width = DisplayWidth(word);
			next_line();
		}
		out += word;
		column += width;
		starts_line = false;
		at = end + 1;
	}
	return out + "\n";
}

std::vector<std::string> Lines(const std::string &text)
{
	std::vector<std::string> lines;
	for (size_t at = 0; at < text.size();) {
		size_t end = std::min(text.find('\n', at), text.size());
		lines.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	return lines;
}

std::string Bar(double fraction, size_t columns, const Style &style)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	const size_t steps = style.unicode ? 8 : 1;
	double exact = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(columns * steps);
	size_t length = static_cast<size_t>(std::lround(exact));
	if (length == 0 && fraction > 0 && columns)
		length = 1;
	std::string bar;
	for (size_t i = 0; i < length / steps; i++)
		bar += style.unicode ? "█" : "#";
	if (length % steps)
		bar += eighths[length % steps];
	return PadRight(bar, columns);
}

// The name has the width that the numbers leave: narrow terminals shorten it, and drop the causes.

namespace
{

constexpr size_t kGroupRows = 20, kGroupCauses = 2;
constexpr size_t kNumberColumns = 12 + 4 * 10 + 9; // requests, four latencies, slow requests

// By GroupBy: the column's title, what further rows are, and what a log without them lacks.
constexpr struct {
	const char *what, *singular, *plural, *unknown;
} kGroupWords[kGroupings] = {
    {"client", "more client", "more clients", "the names of clients"},
    {"command", "more command", "more commands", "commands"},
    {"connection", "more connection", "more connections", "connections"},
    {"size", "more pair of sizes", "more pairs of sizes", "the sizes of requests"},
};

std::string GroupCauses(const RequestGroup &g, size_t columns)
{
	std::string text;
	for (size_t c = 0; c < std::min(g.causes.size(), kGroupCauses); c++) {
		const std::string one =
		    std::string(c ? ", " : "  ") + CauseName(g.causes[c].cause) + " " +
		    common::FormatShare(static_cast<double>(g.causes[c].time_ns) /
					static_cast<double>(std::max<uint64_t>(g.slow_ns, 1)));
		if (DisplayWidth(text + one) > columns)
			break;
		text += one;
	}
	return text;
}

} // namespace

bool GroupTable(const Explanation &e, const Style &style, GroupBy by, std::string *text, std::string *error)
{
	const auto [what, singular, plural, unknown] = kGroupWords[static_cast<size_t>(by)];
	const std::vector<RequestGroup> &groups = e.groups[static_cast<size_t>(by)];
	if (groups.empty()) {
		*error = e.blame.from_iterations
			     ? "--by needs a request log: 'forktail record --requests' or 'forktail load' "
			       "writes one"
			     : std::string("the request log of this run does not have ") + unknown +
				   ": 'forktail record --requests' writes one that does";
		return false;
	}
	size_t name = 8;
	for (size_t i = 0; i < std::min(kGroupRows, groups.size()); i++)
		name = std::max(name, DisplayWidth(groups[i].name));
	name = std::min(name, std::max<size_t>(16, style.columns - std::min(style.columns, kNumberColumns)));
	const size_t used = name + kNumberColumns, left = style.columns - std::min(style.columns, used);
	*text = "\n" +
		style.Strong(PadRight(what, name) + PadLeft("requests", 12) + PadLeft("p50", 10) +
			     PadLeft("p99", 10) + PadLeft("p99.9", 10) + PadLeft("max", 10) +
			     PadLeft("slow", 9) + (left > 8 ? "  mostly" : "")) +
		"\n";
	for (size_t i = 0; i < std::min(kGroupRows, groups.size()); i++) {
		const RequestGroup &g = groups[i];
		const Latencies &l = g.latencies;
		*text += PadRight(Ellipsized(g.name, name, style), name) +
			 PadLeft(common::FormatCount(g.requests), 12);
		for (const uint64_t ns : {l.p50, l.p99, l.p99_9, l.max})
			*text += PadLeft(g.requests == g.errors ? "-" : common::FormatDuration(ns), 10);
		*text += PadLeft(common::FormatCount(g.slow), 9) + GroupCauses(g, left) + "\n";
	}
	if (groups.size() > kGroupRows)
		*text += style.Dim("(" + common::Plural(groups.size() - kGroupRows, singular, plural) +
				   ": --json)") +
			 "\n";
	return true;
}

// A cell that is not known is "-". A column that is known for no row is left out.

namespace
{

constexpr size_t kRows = 5, kNameColumns = 20;

using Row = std::vector<std::string>; // a name, then numbers; "": unknown

std::string Duration(uint64_t ns)
{
	return ns ? common::FormatDuration(ns) : "";
}

std::string Signed(int64_t n, std::string (*format)(uint64_t))
{
	return n < 0 ? "-" + format(0 - static_cast<uint64_t>(n)) : format(static_cast<uint64_t>(n));
}

std::string Count(const std::optional<uint64_t> &n)
{
	return n ? common::FormatCount(*n) : "";
}

int64_t Less(uint64_t a, uint64_t b)
{
	return static_cast<int64_t>(a - b);
}

// Rows below their heads, as many columns as fit.
std::string Table(const Row &heads, const std::vector<Row> &rows, const Style &style)
{
	std::vector<std::string> lines(rows.size() + 1);
	size_t used = 0;
	for (size_t c = 0; c < heads.size(); c++) {
		size_t width = DisplayWidth(heads[c]);
		bool known = false;
		for (const Row &row : rows) {
			width = std::max(width, DisplayWidth(row[c]));
			known |= !row[c].empty();
		}
		if (!known)
			continue;
		if (c == 0)
			width = std::min(width, kNameColumns);
		if (used + width + (c ? 2 : 0) > style.columns)
			break;
		used += width + (c ? 2 : 0);
		for (size_t i = 0; i < lines.size(); i++) {
			const std::string &cell = i ? rows[i - 1][c] : heads[c];
			lines[i] += c ? "  " + PadLeft(cell.empty() ? "-" : cell, width)
				      : PadRight(Ellipsized(cell, width, style), width);
		}
	}
	std::string text = style.Strong(lines[0]) + "\n";
	for (size_t i = 1; i < lines.size(); i++)
		text += lines[i] + "\n";
	return text;
}

// What the columns are, as far as they are known for any command.
std::string CommandsCaption(const ServerCommands &counted)
{
	bool bounds = false, logged = false, served = false;
	for (const ServerCommand &c : counted.commands) {
		bounds |= c.p50_ns != 0;
		logged |= c.logged.has_value();
		served |= c.logged && c.logged->served;
	}
	return "Commands as the server counted them (INFO, over " + common::FormatDuration(counted.ns) +
	       "): time in the command's function" +
	       (bounds ? ", and upper bounds of its percentiles (LATENCY HISTOGRAM)." : ".") +
	       (logged ? " Requests are those of the log." : "") +
	       (served ? " Service is the time from the server's read to its answer." : "");
}

} // namespace

std::string ServerCommandsTable(const Explanation &e, const Style &style)
{
	if (!e.server_commands || e.server_commands->commands.empty())
		return "";
	const std::vector<ServerCommand> &all = e.server_commands->commands;
	std::vector<Row> rows;
	for (size_t i = 0; i < std::min(kRows, all.size()); i++) {
		const ServerCommand &c = all[i];
		const std::optional<OperationCount> &log = c.logged;
		rows.push_back(
		    {c.name, common::FormatCount(c.calls), common::FormatDuration(c.time_ns),
		     c.calls ? common::FormatDuration(c.MeanNs()) : "", Duration(c.p50_ns),
		     Duration(c.p99_ns), log ? common::FormatCount(log->requests) : "",
		     log ? Signed(c.Difference(), common::FormatCount) : "",
		     log && log->served ? common::FormatDuration(log->service_ns / log->served) : ""});
	}
	std::string text = "\n" + Wrap(CommandsCaption(*e.server_commands), 0, 0, style.columns) +
			   Table({"command", "calls", "time", "mean", "p50 <=", "p99 <=", "requests",
				  "difference", "service"},
				 rows, style);
	if (all.size() > kRows)
		text +=
		    "(" + common::Plural(all.size() - kRows, "more command", "more commands") + ": --json)\n";
	return text;
}

std::string ServerThreadsTable(const Explanation &e, const Style &style)
{
	const ServerThreads &all = e.server_threads;
	std::vector<Row> rows;
	for (const ServerThread &t : all.threads) {
		const bool known = t.thread >= 0;
		const std::optional<uint64_t> &counted = t.cpu_ns ? t.cpu_ns : t.active_ns;
		const int64_t difference = Less(counted.value_or(0), t.kernel_cpu_ns);
		rows.push_back({t.name, Count(t.connections), Count(t.reads), Count(t.writes),
				t.active_ns ? common::FormatDuration(*t.active_ns) : "",
				t.cpu_ns ? common::FormatDuration(*t.cpu_ns) : "",
				known ? common::FormatDuration(t.kernel_cpu_ns) : "",
				known && counted ? Signed(difference, common::FormatDuration) : ""});
	}
	if (rows.empty())
		return "";
	const bool recorded =
	    std::ranges::any_of(all.threads, [](const ServerThread &t) { return t.thread >= 0; });
	return "\n" +
	       Wrap("Threads as the server counted them (INFO, over " +
			common::FormatDuration(all.period.until_ns - all.period.since_ns) +
			(recorded ? "), and their CPU time in the kernel's account in the same time." : ")."),
		    0, 0, style.columns) +
	       Table({"thread", "connections", "reads", "writes", "active", "CPU (INFO)", "CPU (kernel)",
		      "difference"},
		     rows, style);
}

nlohmann::ordered_json ServerCommandsJson(const ServerCommands &counted)
{
	nlohmann::ordered_json commands = nlohmann::ordered_json::array();
	for (const ServerCommand &c : counted.commands) {
		nlohmann::ordered_json one = {{"name", c.name},		{"calls", c.calls},
					      {"rejected", c.rejected}, {"failed", c.failed},
					      {"time_ns", c.time_ns},	{"mean_ns", c.MeanNs()}};
		if (c.p50_ns)
			one.update({{"p50_ns", c.p50_ns}, {"p99_ns", c.p99_ns}});
		if (c.logged)
			one.update({{"requests", c.logged->requests}, {"difference", c.Difference()}});
		if (c.logged && c.logged->served)
			one.update({{"served", c.logged->served},
				    {"service_ns", c.logged->service_ns / c.logged->served}});
		commands.push_back(std::move(one));
	}
	return {{"ns", counted.ns}, {"commands", std::move(commands)}};
}

nlohmann::ordered_json ServerThreadsJson(const Explanation &e)
{
	nlohmann::ordered_json threads = nlohmann::ordered_json::array();
	for (const ServerThread &t : e.server_threads.threads) {
		nlohmann::ordered_json one = {{"name", t.name}};
		if (t.thread >= 0)
			one.update({{"tid", OwnId(e.run, e.run.threads[static_cast<size_t>(t.thread)].tid)},
				    {"kernel_cpu_ns", t.kernel_cpu_ns}});
		if (t.cpu_ns)
			one["cpu_ns"] = *t.cpu_ns;
		if (t.cpu_ns && t.thread >= 0)
			one["cpu_difference_ns"] = Less(*t.cpu_ns, t.kernel_cpu_ns);
		if (t.active_ns)
			one["active_ns"] = *t.active_ns;
		if (t.active_ns && t.thread >= 0)
			one["active_difference_ns"] = Less(*t.active_ns, t.kernel_cpu_ns);
		if (t.connections)
			one["connections"] = *t.connections;
		if (t.reads && t.writes)
			one.update({{"reads", *t.reads}, {"writes", *t.writes}});
		threads.push_back(std::move(one));
	}
	const TimeSpan &period = e.server_threads.period;
	return {{"ns", period.until_ns - period.since_ns}, {"threads", std::move(threads)}};
}

} // namespace forktail::analysis
