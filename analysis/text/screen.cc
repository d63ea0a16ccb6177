// SPDX-License-Identifier: MIT
// Composes the default output of explain. Every section is made with smaller and smaller limits until the
// episodes have enough lines. Each section with content keeps at least one line.
#include <algorithm>
#include <cmath>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "common/format.h"
#include "sentences.h"

namespace forktail::analysis
{

namespace
{

using Block = std::vector<std::string>; // lines

constexpr size_t kProseColumns = 120; // maximum width of lines of prose

// Maximum number of lines per section.
struct Room {
	size_t sketch_rows, causes, hops, notes;
};
constexpr Room kRooms[] = {{4, 7, 4, 5}, {4, 6, 3, 4}, {3, 5, 3, 4}, {3, 4, 2, 3}, {2, 3, 2, 2}};
constexpr size_t kMinEpisodeLines = 9;
constexpr size_t kEpisodes = 3; // printed by default, with evidence

struct Screen {
	const Explanation &e;
	const Style &style;
	size_t prose;

	Block Wrapped(const std::string &text, size_t first, size_t indent) const
	{
		return Lines(Wrap(text, first, indent, prose));
	}
};

void Append(const Block &more, Block *text)
{
	text->insert(text->end(), more.begin(), more.end());
}

Block Head(const Screen &s)
{
	Block text;
	for (const std::string &line : s.Wrapped(AnswerText(s.e), 0, 0))
		text.push_back(s.style.Strong(line));
	Append(Lines(RemedyLines(s.e, 3, s.prose)), &text);
	if (const std::string snapshot = LeadingSnapshotText(s.e); !snapshot.empty())
		Append(s.Wrapped(snapshot, 0, 3), &text);
	Append(s.Wrapped(RequestsText(s.e), 0, 0), &text);
	if (const std::string seen = SeenText(s.e); !seen.empty())
		Append(s.Wrapped(seen, 0, 0), &text);
	if (s.e.blame.count > s.e.blame.errors)
		Append(s.Wrapped(PercentilesText(s.e.blame.latencies), 0, 0), &text);
	if (s.e.blame.arrivals.known)
		Append(s.Wrapped(ArrivalsText(s.e), 0, 0), &text);
	Append(s.Wrapped(SlowText(s.e), 0, 0), &text);
	if (const std::string marks = MarksText(s.e); !marks.empty())
		Append(s.Wrapped(marks, 0, 0), &text);
	if (const std::string split = NetworkSplitText(s.e); !split.empty())
		Append(s.Wrapped(split, 0, 0), &text);
	return text;
}

// A column of the table of causes. If the screen is too narrow, columns with the largest `order` are left
// out.
struct Column {
	const char *title;
	size_t width;
	size_t order;
	bool shown = true;
};

std::vector<Column> CauseColumns(const Screen &s, size_t name_width)
{
	std::vector<Column> columns = {
	    {"share", 8, 0},	      {"", 14, 4},
	    {"time", 10, 1},	      {s.e.blame.from_iterations ? "iterations" : "requests", 11, 3},
	    {"p99.9 without", 15, 2}, {"max without", 13, 5}};
	size_t width = name_width;
	for (const Column &c : columns)
		width += c.width;
	for (size_t order = columns.size(); order-- > 0 && width > s.style.columns;)
		for (Column &c : columns)
			if (c.order == order) {
				c.shown = false;
				width -= c.width;
			}
	return columns;
}

// The rows to print, at most `most`. A row of unknown is always printed.
std::vector<const CauseRow *> CausesShown(const Blame &b, size_t most)
{
	std::vector<const CauseRow *> rows;
	const CauseRow *unknown = nullptr;
	for (const CauseRow &row : b.causes) {
		if (row.cause == Cause::Unknown)
			unknown = &row;
		else if (rows.size() < most && row.share >= 0.001)
			rows.push_back(&row);
	}
	if (unknown && rows.size() == most && most > 0)
		rows.pop_back();
	if (unknown)
		rows.push_back(unknown);
	return rows;
}

Block Causes(const Screen &s, size_t most)
{
	const Blame &b = s.e.blame;
	Block text;
	if (b.causes.empty())
		return text;
	const std::vector<const CauseRow *> rows = CausesShown(b, most);
	size_t name_width = 14;
	for (const CauseRow *row : rows)
		name_width = std::max(name_width, DisplayWidth(CauseName(row->cause)));
	const std::vector<Column> columns = CauseColumns(s, name_width);
	std::string head = PadRight("cause", name_width);
	for (const Column &c : columns)
		head += c.shown ? PadLeft(c.title, c.width) : "";
	text.push_back(s.style.Strong(head));
	for (const CauseRow *row : rows) {
		const bool what_if = row->cause != Cause::Unknown;
		const std::string values[] = {common::FormatPercent(row->share),
					      "",
					      common::FormatDuration(row->total_ns()),
					      common::FormatCount(row->requests),
					      what_if ? common::FormatDuration(row->without.p99_9) : "-",
					      what_if ? common::FormatDuration(row->without.max) : "-"};
		std::string line = PadRight(CauseName(row->cause), name_width);
		for (size_t c = 0; c < columns.size(); c++) {
			if (!columns[c].shown)
				continue;
			line += *columns[c].title
				    ? PadLeft(values[c], columns[c].width)
				    : "  " + s.style.Tinted(row->cause,
							    Bar(row->share, columns[c].width - 2, s.style));
		}
		text.push_back(line);
	}
	if (rows.size() < b.causes.size())
		text.push_back(s.style.Dim(
		    "(" + common::Plural(b.causes.size() - rows.size(), "more cause", "more causes") +
		    ": --all)"));
	return text;
}

// The time by hop, if requests passed more than one process or thread.
Block Hops(const Screen &s, size_t most)
{
	const Blame &b = s.e.blame;
	Block text;
	if (b.hops.size() < 2 || b.slow.empty())
		return text;
	const bool wide = s.style.columns > 60;
	const size_t name_width = std::min<size_t>(wide ? s.style.columns - 42 : 18, 48);
	text.push_back(s.style.Strong(PadRight("hop", name_width) + PadLeft("share", 8) +
				      PadLeft("time", 10) + (wide ? "  mostly" : "")));
	for (size_t i = 0; i < std::min(most, b.hops.size()); i++) {
		const HopRow &row = b.hops[i];
		std::string name = HopNameOf(s.e.run, s.e.hop_threads, row.hop, b.from_iterations).text();
		std::string line = PadRight(Ellipsized(name, name_width, s.style), name_width) +
				   PadLeft(common::FormatPercent(row.share), 8) +
				   PadLeft(common::FormatDuration(row.time_ns), 10);
		if (wide && !row.causes.empty())
			line += "  " + std::string(CauseName(row.causes[0].cause)) + " " +
				common::FormatShare(static_cast<double>(row.causes[0].time_ns) /
						    static_cast<double>(std::max<uint64_t>(row.time_ns, 1)));
		text.push_back(line);
	}
	if (b.hops.size() > most)
		text.push_back(s.style.Dim(
		    "(" + common::Plural(b.hops.size() - most, "more hop", "more hops") + ": --all)"));
	return text;
}

// On-CPU time by activity, if server-busy is a large part of the slow requests' time.
Block OwnCodeLine(const Screen &s)
{
	constexpr double worth_saying = 0.1;
	const OwnCode &own = s.e.own_code;
	if (s.e.blame.RowOf(Cause::ServerBusy).share < worth_saying || own.activities.empty())
		return {};
	std::string line = "On-CPU time by function: ";
	for (size_t i = 0; i < std::min<size_t>(own.activities.size(), 5); i++) {
		const ActivityTime &a = own.activities[i];
		std::string one = (i ? ", " : "") + a.name + " " + common::FormatShare(a.share);
		if (DisplayWidth(line + one) > s.prose)
			break;
		line += one;
	}
	return s.Wrapped(line, 0, 3);
}

Block Sentence(const Screen &s, const std::string &text)
{
	Block lines = s.Wrapped(text, 3, 5);
	lines[0] = "   " + lines[0];
	return lines;
}

// The head and first sentence of each episode that fits, then as many further sentences as fit: the second
// one of each episode, then the third ones ... The worst episode is printed with its first sentence in any
// case.
Block Episodes(const Screen &s, const std::vector<uint32_t> &worst, size_t most, bool all)
{
	std::vector<Block> heads;
	std::vector<std::vector<Block>> sentences;
	size_t used = 1;
	for (uint32_t index : worst) {
		Block head = s.Wrapped(EpisodeHead(s.e, index, heads.size() + 1), 0, 3);
		std::vector<Block> first;
		if (!s.e.episodes[index].evidence.empty())
			first.push_back(Sentence(s, s.e.episodes[index].evidence[0]));
		const size_t lines = head.size() + (first.empty() ? 0 : first[0].size());
		if (!all && !heads.empty() && used + lines > most)
			break;
		used += lines;
		heads.push_back(head);
		sentences.push_back(first);
	}
	bool more = true;
	for (size_t n = 1; more; n++) {
		more = false;
		for (size_t i = 0; i < heads.size(); i++) {
			const Episode &episode = s.e.episodes[worst[i]];
			if (n >= episode.evidence.size() || sentences[i].size() < n)
				continue; // no more sentences, or an earlier one did not fit
			Block lines = Sentence(s, episode.evidence[n]);
			if (!all && used + lines.size() > most)
				continue;
			used += lines.size();
			sentences[i].push_back(lines);
			more = true;
		}
	}
	Block text;
	if (heads.empty())
		return text;
	text.push_back(s.style.Strong(heads.size() < s.e.episodes.size()
					  ? "The " + common::Plural(heads.size(), "worst", "worst") + " of " +
						common::Plural(s.e.episodes.size(), "episode", "episodes")
					  : std::string("Episodes, worst first")));
	for (size_t i = 0; i < heads.size(); i++) {
		Append(heads[i], &text);
		for (const Block &lines : sentences[i])
			Append(lines, &text);
	}
	return text;
}

// Drops, notes on limits of the explanation, and options that print more.
Block Foot(const Screen &s, size_t most)
{
	std::vector<std::string> notes = DropTexts(s.e);
	for (const std::string &note : NoteTexts(s.e))
		notes.push_back(note);
	Block text;
	size_t shown = 0;
	for (; shown < notes.size(); shown++) {
		Block lines = s.Wrapped(notes[shown], 0, 3);
		if (text.size() + lines.size() > most)
			break;
		Append(lines, &text);
	}
	if (shown < notes.size())
		text.push_back(
		    Ellipsized("(" + common::Plural(notes.size() - shown, "more note", "more notes") +
				   " on drops and limits: --all)",
			       s.style.columns, s.style));
	std::string clock = ClockText(s.e, s.e.zero_ns);
	std::string hint = (clock.empty() ? "" : "+0 s is " + clock.substr(0, 19) + " UTC. ") +
			   std::string("More: --all, --episode N, --cause NAME");
	text.push_back(s.style.Dim(Ellipsized(hint, s.style.columns, s.style)));
	return text;
}

void AppendSection(const Block &section, Block *text)
{
	if (section.empty())
		return;
	text->push_back("");
	Append(section, text);
}

} // namespace

std::string EpisodeHead(const Explanation &e, uint32_t index, size_t number)
{
	const Episode &episode = e.episodes[index];
	const char *one = e.blame.from_iterations ? "iteration" : "request";
	const char *many = e.blame.from_iterations ? "iterations" : "requests";
	std::string text = Format("%-2zu %s  %s  %s, worst %s", number,
				  common::FormatOffset(episode.start_ns, e.zero_ns).c_str(),
				  common::FormatDuration(episode.end_ns - episode.start_ns).c_str(),
				  common::Plural(episode.requests, one, many).c_str(),
				  common::FormatDuration(episode.worst_ns).c_str());
	for (size_t c = 0; c < episode.causes.size() && c < 3; c++) {
		if (c && episode.causes[c].share < 0.01)
			break;
		text += (c ? ", " : ": ") + std::string(CauseName(episode.causes[c].cause)) + " " +
			common::FormatShare(episode.causes[c].share);
	}
	if ((e.blame.hops.size() > 1 || SeveralHosts(e.run)) && !episode.hops.empty())
		text += "; " + common::FormatShare(episode.hops[0].share) + " at " +
			HopNameOf(e.run, e.hop_threads, episode.hops[0].hop, e.blame.from_iterations).text();
	return text;
}

std::string ExplainScreen(const Explanation &e, const Style &style, size_t asked)
{
	const Screen s = {e, style, std::min(style.columns, kProseColumns)};
	const std::vector<uint32_t> worst = WorstEpisodes(e.episodes, asked ? asked : kEpisodes);
	const Block head = Head(s), own = OwnCodeLine(s);
	Block before, after;
	for (const Room &room : kRooms) {
		before = head;
		AppendSection(LatencySketch(e, style, room.sketch_rows, worst), &before);
		AppendSection(Causes(s, room.causes), &before);
		AppendSection(Hops(s, room.hops), &before);
		after.clear();
		AppendSection(own, &after);
		AppendSection(Foot(s, room.notes), &after);
		if (before.size() + after.size() + kMinEpisodeLines <= kScreenLines)
			break;
	}
	size_t taken = before.size() + after.size() + 1;
	size_t left = taken < kScreenLines ? kScreenLines - taken : 0;
	AppendSection(Episodes(s, worst, left, asked > 0), &before);
	Append(after, &before);
	std::string text;
	for (const std::string &line : before)
		text += line + "\n";
	return text;
}

// Draws the latency sketch.

namespace
{

constexpr size_t kLabel = 9; // "  39.0 ms"
constexpr size_t kMaxColumns = 240;

// There is no log of event-loop iterations, so only slow ones are drawn.
std::vector<uint64_t> PeaksOf(const Explanation &e, uint64_t from_ns, uint64_t to_ns, size_t columns)
{
	if (!e.peaks.empty())
		return e.peaks.Over(from_ns, to_ns, columns);
	Peaks slow;
	for (const SlowRequest &r : e.blame.slow)
		slow.Add(r.due_ns, r.latency_ns);
	return slow.Over(from_ns, to_ns, columns);
}

// One cell, filled in eighths with Unicode blocks, otherwise in thirds.
std::string Cell(double filled, bool unicode)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {" ", ".", ":", "#"};
	filled = std::clamp(filled, 0.0, 1.0);
	if (unicode)
		return blocks[static_cast<size_t>(std::ceil(filled * 8))];
	return plain[static_cast<size_t>(std::ceil(filled * 3))];
}

std::string EpisodesLine(const Explanation &e, const std::vector<uint32_t> &worst, size_t columns)
{
	std::string line(columns, ' ');
	const double width =
	    static_cast<double>(std::max<uint64_t>(e.measured_ns, 1)) / static_cast<double>(columns);
	for (size_t i = std::min<size_t>(worst.size(), 9); i > 0;
	     i--) { // the worst last, so that it stays visible
		uint64_t start = e.episodes[worst[i - 1]].start_ns;
		double at = start <= e.first_ns ? 0 : static_cast<double>(start - e.first_ns) / width;
		line[std::min(static_cast<size_t>(at), columns - 1)] = static_cast<char>('0' + i);
	}
	line.erase(line.find_last_not_of(' ') + 1);
	return line;
}

} // namespace

std::vector<std::string> LatencySketch(const Explanation &e, const Style &style, size_t rows,
				       const std::vector<uint32_t> &worst)
{
	std::vector<std::string> lines;
	if (e.measured_ns == 0 || style.columns < 2 * kLabel)
		return lines;
	const size_t columns = std::min(style.columns - kLabel - 2, kMaxColumns);
	const std::vector<uint64_t> peaks = PeaksOf(e, e.first_ns, e.first_ns + e.measured_ns, columns);
	const uint64_t most = *std::max_element(peaks.begin(), peaks.end());
	if (most == 0)
		return lines;
	uint64_t least = most;
	for (uint64_t p : peaks)
		least = p ? std::min(least, p) : least;
	// One row is at least a factor of two, so that a run with even latency looks flat.
	const double top = std::log(static_cast<double>(most)),
		     bottom = std::min(std::log(static_cast<double>(least)) - std::log(1.5),
				       top - static_cast<double>(rows) * std::log(2));
	for (size_t row = 0; row < rows; row++) {
		double above = static_cast<double>(rows - 1 - row); // rows below this one
		double edge = bottom + (top - bottom) * (above + 1) / static_cast<double>(rows);
		std::string line =
		    PadLeft(common::FormatDuration(static_cast<uint64_t>(std::llround(std::exp(edge)))),
			    kLabel) +
		    (style.unicode ? " ▏" : " |");
		for (uint64_t p : peaks) {
			double height = p ? (std::log(static_cast<double>(p)) - bottom) / (top - bottom) *
						static_cast<double>(rows)
					  : 0;
			std::string cell = Cell(height - above, style.unicode);
			bool slow = p >= e.blame.threshold_ns && cell != " ";
			line += slow ? style.Alarming(cell) : cell;
		}
		while (line.back() == ' ')
			line.pop_back();
		lines.push_back(line);
	}
	if (!worst.empty())
		lines.push_back(PadLeft("episode", kLabel) + "  " + EpisodesLine(e, worst, columns));
	std::string from = common::FormatOffset(e.first_ns, e.zero_ns),
		    to = common::FormatOffset(e.first_ns + e.measured_ns, e.zero_ns);
	lines.push_back(PadLeft("longest", kLabel) + "  " + from +
			PadLeft(to, columns - std::min(columns, from.size())));
	return lines;
}

} // namespace forktail::analysis
