// SPDX-License-Identifier: MIT
// The lines of the screen.
//
// Some lines are fixed (server, strip, iterations, status, keys). Causes, the longest iteration and facts
// share the rest, each with a minimum.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "analysis/text.h"
#include "common/format.h"
#include "live/watch.h"
#include "sentences.h"

namespace forktail::live::watch
{

namespace
{

constexpr size_t kLabel = 9; // columns before the strip: a duration and a space
constexpr size_t kNameColumns = 17, kTimeColumns = 9;
constexpr size_t kOnceClients = 10;
constexpr uint64_t kStripFloorNs = 10'000; // below this no column is drawn

Line Cut(Line line, size_t columns, const analysis::Style &style)
{
	size_t left = columns;
	for (Words &words : line) {
		words.text = analysis::Ellipsized(words.text, left, style);
		left -= std::min(left, analysis::DisplayWidth(words.text));
	}
	return line;
}

// Pads a line to the full width, for reversed lines.
Line Filled(const std::string &left, const std::string &right, size_t columns, const analysis::Style &style)
{
	const size_t of_right = std::min(analysis::DisplayWidth(right), columns);
	const std::string text = analysis::Ellipsized(left, columns - std::min(columns, of_right + 1), style);
	const size_t room = columns - of_right;
	return {
	    {analysis::PadRight(text, room) + analysis::Ellipsized(right, of_right, style), Look::Reverse}};
}

std::string AgeText(uint64_t ns)
{
	const uint64_t seconds = ns / kSecondNs;
	if (seconds < 120)
		return analysis::Format("%llu s ago", static_cast<unsigned long long>(seconds));
	return analysis::Format("%llu min ago", static_cast<unsigned long long>(seconds / 60));
}

Line Title(const Frame &f, size_t columns, const analysis::Style &style)
{
	constexpr size_t least = 12; // columns of a name that distinguish it
	std::string left = "forktail watch", right, which;
	if (f.servers)
		left = analysis::Format("%s  pid %u%s", f.server.c_str(), f.pid, f.alive ? "" : " (ended)");
	if (f.servers > 1)
		which = analysis::Format("  [%zu of %zu, tab]", f.server_index + 1, f.servers);
	if (f.has_second)
		right = ClockText(f.second.realtime_ns) + (f.frozen ? "  FROZEN " : "  live ") +
			AgeText(f.age_ns);
	const size_t taken = analysis::DisplayWidth(right) + 1 + analysis::DisplayWidth(which);
	if (columns >= taken + least)
		left = analysis::Ellipsized(left, columns - taken, style) + which;
	return Filled(left, right, columns, style);
}

// Position of an iteration on the strip's scale, 0 to 1: logarithmic, because spikes are thousands of times
// longer than normal iterations.
double Height(uint64_t ns, uint64_t top_ns)
{
	if (ns == kNoIteration || ns <= kStripFloorNs)
		return 0;
	const double floor = std::log(static_cast<double>(kStripFloorNs));
	const double span = std::log(static_cast<double>(top_ns)) - floor;
	return span <= 0 ? 1 : (std::log(static_cast<double>(ns)) - floor) / span;
}

// The character of a column in one of `rows` rows; row 0 is the lowest.
std::string Cell(double height, size_t row, size_t rows, const analysis::Style &style)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {" ", "_", ".", ".", ":", ":", "|", "|", "#"};
	const double steps = height * 8 * static_cast<double>(rows) - 8 * static_cast<double>(row);
	long step = std::clamp(std::lround(steps), 0L, 8L);
	if (height > 0 && row == 0)
		step = std::max(step, 1L);
	return (style.unicode ? blocks : ascii)[step];
}

// Longest iterations by second in `rows` rows, and a line that points to the shown second.
std::vector<Line> Strip(const Frame &f, size_t columns, size_t rows, const analysis::Style &style)
{
	uint64_t top_ns = 0;
	for (uint64_t ns : f.strip)
		top_ns = ns == kNoIteration ? top_ns : std::max(top_ns, ns);
	std::vector<Line> lines;
	for (size_t row = rows; row-- > 0;) {
		std::string label = row + 1 == rows ? common::FormatDuration(top_ns)
				    : row == 0	    ? "10 us"
						    : "";
		Line line = {{analysis::PadLeft(label, kLabel - 1) + " ", Look::Dim}};
		for (size_t i = 0; i < f.strip.size() && i < StripSeconds(columns); i++) {
			const bool unknown = f.strip[i] == kNoIteration;
			const std::string cell = unknown ? (row == 0 ? "?" : " ")
							 : Cell(Height(f.strip[i], top_ns), row, rows, style);
			const Look look = i == f.chosen && f.has_second ? Look::Chosen
					  : unknown			? Look::Dim
									: Look::Plain;
			if (line.back().look == look && line.size() > 1)
				line.back().text += cell;
			else
				line.push_back({cell, look});
		}
		lines.push_back(Cut(line, columns, style));
	}
	std::string pointer(kLabel + f.chosen, ' ');
	pointer += f.has_second ? "^" : "";
	const std::string text = "longest iteration per second, " +
				 std::string(f.has_second ? ClockText(f.second.realtime_ns) : "nothing yet");
	if (pointer.size() + 1 + analysis::DisplayWidth(text) <= columns)
		pointer += " " + text;
	else if (f.chosen + kLabel > analysis::DisplayWidth(text) + 1)
		pointer.replace(f.chosen + kLabel - analysis::DisplayWidth(text) - 1,
				analysis::DisplayWidth(text), text);
	lines.push_back(Cut({{pointer, Look::Dim}}, columns, style));
	return lines;
}

// Time by cause of the serving threads. Bars are shares of their total time; stalls are marked.
std::vector<Line> Bars(const Figures &second, size_t columns, const analysis::Style &style)
{
	std::vector<Line> lines;
	size_t threads = 0;
	const std::vector<Part> parts = ServingParts(second, &threads);
	const double whole = static_cast<double>(std::max<size_t>(threads, 1)) * 1e9;
	// The text about the longest interval gets the space that the bar leaves.
	const size_t fixed = kNameColumns + kTimeColumns + 3;
	const size_t bar =
	    columns > fixed + 10 ? std::clamp((columns - fixed) * 2 / 5, size_t{6}, size_t{60}) : 6;
	for (const Part &part : parts) {
		if (part.ns == 0)
			continue;
		std::string rest;
		if (part.count)
			rest += common::FormatCount(part.count) + "x";
		if (part.longest_ns)
			rest += (rest.empty() ? "" : ", ") +
				("longest " + common::FormatDuration(part.longest_ns)) +
				(part.detail.empty() ? "" : " " + part.detail);
		const bool stall = analysis::IsStall(part.cause);
		lines.push_back(
		    Cut({{stall ? "! " : "  ", stall ? Look::Alarm : Look::Plain},
			 {analysis::PadRight(analysis::AccountName(part.cause), kNameColumns - 2),
			  stall ? Look::Strong : Look::Plain},
			 {analysis::PadLeft(common::FormatDuration(part.ns), kTimeColumns) + "  "},
			 {analysis::Bar(static_cast<double>(part.ns) / whole, bar, style), Look::Tinted,
			  part.cause},
			 {" " + rest}},
			columns, style));
	}
	if (lines.empty())
		lines.push_back(
		    {{threads ? "  idle for the whole second" : "  no data for this second", Look::Dim}});
	return lines;
}

Line Iterations(const Figures &second, size_t columns, const analysis::Style &style)
{
	uint64_t idle_ns = 0, whole_ns = 0;
	for (const ThreadFigures &thread : second.threads)
		for (const Part &part : thread.parts)
			if (thread.serves) {
				whole_ns += part.ns;
				idle_ns += part.cause == analysis::Cause::Idle ? part.ns : 0;
			}
	std::string text = "iterations: none";
	if (second.iterations)
		text = analysis::Format("iterations %s  p50 %s  p99 %s  max %s",
					common::FormatCount(second.iterations).c_str(),
					common::FormatDuration(second.p50_ns).c_str(),
					common::FormatDuration(second.p99_ns).c_str(),
					common::FormatDuration(second.max_ns).c_str());
	const double whole = static_cast<double>(std::max<uint64_t>(whole_ns, 1));
	if (whole_ns)
		text += analysis::Format(
		    "   stalled %s  idle %s",
		    common::FormatShare(static_cast<double>(StalledNs(second)) / whole).c_str(),
		    common::FormatShare(static_cast<double>(idle_ns) / whole).c_str());
	return Cut({{text, Look::Strong}}, columns, style);
}

// Requests of the second; nothing if they are not recorded.
std::vector<Line> Requests(const Frame &f, size_t columns, const analysis::Style &style)
{
	const RequestFigures &r = f.second.requests;
	if (!f.health.request_sample)
		return {};
	std::string text = "requests " + common::FormatCount(r.count) + "/s";
	if (r.count)
		text += "  p99 " + common::FormatDuration(r.p99_ns) + "  max " +
			common::FormatDuration(r.max_ns) + " in the server";
	if (f.health.request_sample > 1)
		text += analysis::Format(" (1/%u of connections)", f.health.request_sample);
	return {Cut({{text, Look::Strong}}, columns, style)};
}

std::vector<Line> Wrapped(const std::string &head, const std::string &text, size_t columns, Look look,
			  const analysis::Style &style)
{
	std::vector<Line> lines;
	for (const std::string &line : analysis::Lines(analysis::Wrap(head + text, 0, 2, columns)))
		lines.push_back(Cut({{line, lines.empty() ? look : Look::Plain}}, columns, style));
	return lines;
}

std::string RateText(double per_second)
{
	return per_second < 10 ? analysis::Format("%.1f", per_second)
			       : common::FormatCount(static_cast<uint64_t>(std::llround(per_second)));
}

// The slowest clients, one per line below a heading.
std::vector<Line> Clients(const Frame &f, size_t columns, const analysis::Style &style)
{
	constexpr size_t rate = 12, time = 10, share = 9, least = 8; // "< 0.01 %" has 8
	const bool wide = columns >= 60;
	const size_t fixed = rate + time + (wide ? time + share : 0);
	const size_t name = std::min(std::max(columns, fixed + least) - fixed, size_t{46});
	auto row = [&](const std::string &who, const std::string &per_second, const std::string &mean,
		       const std::string &max, const std::string &part, Look look) {
		std::string text = analysis::PadRight(analysis::Ellipsized(who, name, style), name) +
				   analysis::PadLeft(per_second, rate);
		text += (wide ? analysis::PadLeft(mean, time) : "") + analysis::PadLeft(max, time) +
			(wide ? analysis::PadLeft(part, share) : "");
		return Cut({{text, look}}, columns, style);
	};
	if (!f.health.request_sample)
		return Wrapped("", "Requests are not recorded. Start forktail record with --requests.",
			       columns, Look::Plain, style);
	std::vector<Line> lines = {row(wide ? "slowest clients of the minute" : "slowest clients",
				       "requests/s", "mean", "max", "share", Look::Dim)};
	for (const ClientFigures &c : f.clients)
		lines.push_back(row(c.name, RateText(c.per_second), common::FormatDuration(c.mean_ns),
				    common::FormatDuration(c.max_ns), common::FormatShare(c.share),
				    Look::Plain));
	if (f.clients.empty())
		lines.push_back({{"no requests in this minute", Look::Dim}});
	return lines;
}

std::vector<Line> Worst(const Frame &f, size_t columns, const analysis::Style &style)
{
	if (!f.worst.duration_ns)
		return {{{"no event-loop iteration in this minute", Look::Dim}}};
	return Wrapped("longest iteration of the minute: ", WorstText(f.worst, f.worst_realtime_ns), columns,
		       Look::Strong, style);
}

std::vector<Line> Facts(const Frame &f, size_t columns, const analysis::Style &style)
{
	std::vector<Line> lines;
	for (const std::string &fact : FactsOf(f))
		lines.push_back(Cut({{fact}}, columns, style));
	return lines;
}

Line Status(const Frame &f, size_t columns, const analysis::Style &style)
{
	const Health &h = f.health;
	const bool bad = !h.recording || h.dropped || h.damaged;
	return Cut({{StatusText(h), bad ? Look::Alarm : Look::Dim}}, columns, style);
}

Line Bottom(const Frame &f, size_t columns, const analysis::Style &style)
{
	if (!f.message.empty())
		return Filled(f.message, "", columns, style);
	const char *keys = columns >= 78 && f.health.request_sample
			       ? "q quit  space freeze  arrows scroll  w worst  c clients  e explain  ? help"
			   : columns >= 78 ? "q quit  space freeze  left/right scroll  w worst  e explain  "
					     "s snapshot  ? help"
					   : "q quit  space freeze  arrows  e explain  ? help";
	return Filled(keys, "", columns, style);
}

void Append(std::vector<Line> lines, size_t most, std::vector<Line> *to)
{
	for (size_t i = 0; i < lines.size() && i < most; i++)
		to->push_back(std::move(lines[i]));
}

// Distributes rows to three lists: first their minimum, then one row each in rotation.
void Share(size_t rows, const size_t (&least)[3], const size_t (&has)[3], size_t (&given)[3])
{
	for (size_t i = 0; i < 3; i++) {
		given[i] = std::min({least[i], has[i], rows});
		rows -= given[i];
	}
	for (bool any = true; any && rows;) {
		any = false;
		for (size_t i = 0; i < 3 && rows; i++)
			if (given[i] < has[i]) {
				given[i]++;
				rows--;
				any = true;
			}
	}
}

// Causes, the longest iteration and facts of the second in `room` rows.
void AppendSecond(const Frame &f, size_t columns, size_t room, const analysis::Style &style,
		  std::vector<Line> *lines)
{
	std::vector<Line> bars = Bars(f.second, columns, style), worst = Worst(f, columns, style),
			  facts = Facts(f, columns, style);
	size_t given[3];
	Share(room, {3, 3, 2}, {bars.size(), worst.size(), facts.size()}, given);
	Append(std::move(bars), given[0], lines);
	Append(std::move(worst), given[1], lines);
	Append(std::move(facts), given[2], lines);
}

} // namespace

size_t WidthOf(const Line &line)
{
	size_t width = 0;
	for (const Words &words : line)
		width += analysis::DisplayWidth(words.text);
	return width;
}

std::string TextOf(const Line &line)
{
	std::string text;
	for (const Words &words : line)
		text += words.text;
	return text.substr(0, text.find_last_not_of(' ') + 1);
}

size_t StripSeconds(size_t columns)
{
	return columns > kLabel + 1 ? columns - kLabel : 1;
}

std::vector<Line> LayOut(const Frame &f, size_t columns, size_t rows, const analysis::Style &style)
{
	std::vector<Line> lines = {Title(f, columns, style)};
	if (!f.has_second) {
		Append(Wrapped("", f.waiting.empty() ? "nothing is recorded yet" : f.waiting, columns,
			       Look::Plain, style),
		       rows > 4 ? rows - 4 : 1, &lines);
		lines.push_back(Status(f, columns, style));
		while (lines.size() + 1 < rows)
			lines.insert(lines.end() - 1, Line());
		lines.push_back(Bottom(f, columns, style));
		lines.resize(std::min(lines.size(), rows));
		return lines;
	}
	std::vector<Line> requests = Requests(f, columns, style);
	const size_t strip = rows < 10 + 2 * requests.size() ? 0 : rows < 20 ? 1 : rows < 35 ? 3 : 6;
	if (strip)
		Append(Strip(f, columns, strip, style), strip + 1, &lines);
	lines.push_back(Iterations(f.second, columns, style));
	Append(std::move(requests), SIZE_MAX, &lines);
	const size_t fixed = lines.size() + 2, room = rows > fixed ? rows - fixed : 0;
	if (f.show_clients)
		Append(Clients(f, columns, style), room, &lines);
	else
		AppendSecond(f, columns, room, style, &lines);
	while (lines.size() + 2 < rows)
		lines.push_back({});
	lines.push_back(Status(f, columns, style));
	lines.push_back(Bottom(f, columns, style));
	lines.resize(std::min(lines.size(), rows));
	return lines;
}

std::vector<Line> LayOutOnce(const Frame &f, size_t columns, const analysis::Style &style)
{
	std::vector<Line> lines = {{{TextOf(Title(f, columns, style))}}};
	lines.push_back(Iterations(f.second, columns, style));
	Append(Requests(f, columns, style), SIZE_MAX, &lines);
	Append(Bars(f.second, columns, style), SIZE_MAX, &lines);
	Append(Worst(f, columns, style), SIZE_MAX, &lines);
	Append(Facts(f, columns, style), SIZE_MAX, &lines);
	if (f.health.request_sample)
		Append(Clients(f, columns, style), kOnceClients + 1, &lines);
	lines.push_back(Status(f, columns, style));
	return lines;
}

std::vector<Line> LayOutHelp(size_t columns, size_t rows)
{
	static const char *const text[] = {
	    "forktail watch: what the threads of a server do, second by second",
	    "",
	    "q            quit",
	    "space p      freeze or resume the screen; recording continues",
	    "left right   one second back or forward (h l)   PgUp PgDn  half a strip",
	    "Home End     oldest second of the ring (at most ten minutes back); live again",
	    "w            second with the longest iteration of the minute",
	    "tab          next server",
	    "enter e      open forktail explain for this second in a pager",
	    "c            slowest clients of the minute (with forktail record --requests)",
	    "s            save the minute around this second as a snapshot",
	    "?            help; any key returns",
	    "",
	    "iteration    one pass of the event loop; clients wait while it runs",
	    "!            a stall: the thread could not run its own code; bars: shares of its second",
	    "The screen is two seconds behind. See docs/reference/watch-and-metrics.md.",
	};
	std::vector<Line> lines;
	analysis::Style style;
	for (const char *line : text)
		if (lines.size() < rows)
			lines.push_back(
			    Cut({{line, lines.empty() ? Look::Strong : Look::Plain}}, columns, style));
	return lines;
}

namespace
{

constexpr size_t kTakers = 3;
constexpr size_t kClients = 100;

// Places the shown second in the strip: at the right end while live, further left the older it is. When it
// would leave the strip, the strip scrolls.
void FillStrip(const History &history, size_t server, uint64_t last_ns, size_t seconds, Frame *f)
{
	const uint64_t shown_ns = f->second.start_ns;
	const uint64_t back = (last_ns - std::min(last_ns, shown_ns)) / kSecondNs;
	const uint64_t half = seconds / 2;
	const uint64_t end_ns = back < seconds ? last_ns : shown_ns + half * kSecondNs;
	for (size_t i = 0; i < seconds; i++) {
		const uint64_t ago_ns = (seconds - 1 - i) * kSecondNs;
		const uint64_t at_ns = end_ns - std::min(end_ns, ago_ns);
		const Figures *second = ago_ns <= end_ns ? history.Second(server, at_ns) : nullptr;
		f->strip.push_back(second && second->accounted ? second->max_ns : kNoIteration);
		if (at_ns == shown_ns)
			f->chosen = i;
	}
}

// What the server's own threads copied from a child's begin to the end of a second.
std::optional<uint64_t> CopiedBytes(const ServerHistory &server, const Child &child, uint64_t second_ns)
{
	auto at = server.seconds.upper_bound(child.start_ns);
	if (at == server.seconds.begin())
		return {};
	uint64_t pages = 0;
	for (--at; at != server.seconds.end() && at->first <= second_ns; ++at)
		for (const ThreadFigures &thread : at->second.threads)
			for (const Part &part : thread.parts)
				if (!thread.child && part.cause == analysis::Cause::CowCopy)
					pages += part.count;
	return pages * analysis::kPageBytes;
}

} // namespace

Frame MakeFrame(const History &history, const Choice &choice, size_t strip)
{
	Frame f;
	f.health = history.health;
	f.frozen = choice.frozen;
	f.show_clients = choice.clients;
	f.servers = history.servers().size();
	if (!f.servers)
		return f;
	f.server_index = std::min(choice.server, f.servers - 1);
	const ServerHistory &server = history.servers()[f.server_index];
	f.server = server.name;
	f.pid = server.pid;
	f.alive = server.alive;
	const uint64_t last_ns = history.last_ns();
	if (!last_ns)
		return f;
	f.has_second = true;
	f.second.start_ns = choice.frozen ? choice.second_ns : last_ns;
	if (const Figures *second = history.Second(f.server_index, f.second.start_ns))
		f.second = *second;
	f.second.taken.resize(std::min(f.second.taken.size(), kTakers));
	if (!f.second.realtime_ns)
		for (size_t other = 0; other < f.servers; other++)
			if (const Figures *second = history.Second(other, f.second.start_ns))
				f.second.realtime_ns = std::max(f.second.realtime_ns, second->realtime_ns);
	if (const Figures *worst = history.Worst(f.server_index, f.second.start_ns, kMinuteSeconds)) {
		f.worst = worst->worst;
		f.worst_realtime_ns = worst->realtime_ns;
		f.worst_age_ns = f.second.start_ns - worst->start_ns;
	}
	if (choice.clients) {
		size_t seconds = 0;
		std::vector<OfClient> clients =
		    history.Clients(f.server_index, f.second.start_ns, kMinuteSeconds, &seconds);
		f.clients = SlowestClients(std::move(clients),
					   static_cast<double>(std::max<size_t>(seconds, 1)), kClients);
	}
	FillStrip(history, f.server_index, last_ns, strip, &f);
	for (const Child &child : server.children)
		if (child.start_ns < f.second.end_ns() &&
		    (!child.end_ns || child.end_ns >= f.second.start_ns)) {
			f.children.push_back(child);
			f.children.back().copied_bytes = CopiedBytes(server, child, f.second.start_ns);
		}
	f.event = history.EventAt(f.second.start_ns, !choice.frozen);
	return f;
}

namespace
{

// "fork 48.0 ms, own-code 2.10 ms": the largest parts.
std::string PartsText(std::vector<Part> parts, size_t most, uint64_t whole_ns)
{
	std::stable_sort(parts.begin(), parts.end(),
			 [](const Part &a, const Part &b) { return a.ns > b.ns; });
	std::string text;
	size_t shown = 0;
	for (const Part &part : parts) {
		// Skips parts that would round to 0 %.
		if (!part.ns || part.ns < whole_ns / 200 || shown++ == most)
			break;
		text += std::string(text.empty() ? "" : ", ") + analysis::AccountName(part.cause) + " " +
			common::FormatDuration(part.ns);
		if (whole_ns)
			text += " (" +
				common::FormatShare(static_cast<double>(part.ns) /
						    static_cast<double>(whole_ns)) +
				")";
	}
	return text;
}

// What a background thread did; "" if it waited for work (usually at a lock) or is unknown.
std::string DoingText(const ThreadFigures &thread)
{
	std::vector<Part> parts;
	for (const Part &part : thread.parts)
		if (part.cause != analysis::Cause::Idle && part.cause != analysis::Cause::Unknown &&
		    part.cause != analysis::Cause::LockWait)
			parts.push_back(part);
	return PartsText(parts, 4, 0);
}

std::string ChildText(const Child &child, const Figures &second)
{
	const bool ended = child.end_ns && child.end_ns <= second.end_ns();
	const uint64_t until_ns = ended ? child.end_ns : second.end_ns();
	const uint64_t so_far_ns = until_ns - std::min(child.start_ns, until_ns);
	std::string text =
	    analysis::Format("%s %u: %s%s", child.role.c_str(), child.pid, ended ? "ended after " : "",
			     common::FormatDuration(so_far_ns).c_str());
	if (!ended)
		text += " so far";
	if (child.last_took_ns) {
		text += ", the previous one took " + common::FormatDuration(child.last_took_ns);
		if (!ended)
			text += " (" +
				common::FormatShare(static_cast<double>(so_far_ns) /
						    static_cast<double>(child.last_took_ns)) +
				" of that)";
	}
	if (child.copied_bytes.value_or(0))
		text += "; copied " + common::FormatBytes(*child.copied_bytes);
	for (const ThreadFigures &thread : second.threads)
		if (thread.child && thread.name == child.role)
			if (std::string doing = DoingText(thread); !doing.empty())
				text += "; " + doing;
	return text;
}

// Page faults of serving threads by cause.
std::string FaultsText(const Figures &second)
{
	static const analysis::Cause faults[] = {analysis::Cause::CowCopy,  analysis::Cause::CowReuse,
						 analysis::Cause::PageZero, analysis::Cause::PageFile,
						 analysis::Cause::PageIn,   analysis::Cause::PageFault};
	size_t threads = 0;
	std::string text;
	for (const Part &part : ServingParts(second, &threads))
		if (part.count &&
		    std::find(std::begin(faults), std::end(faults), part.cause) != std::end(faults))
			text += (text.empty() ? "faults: " : ", ") + common::FormatCount(part.count) + " " +
				analysis::AccountName(part.cause) + " in " + common::FormatDuration(part.ns);
	return text;
}

std::string TakenText(const Figures &second)
{
	std::string text;
	for (const Taker &taker : second.taken)
		text += (text.empty() ? "CPU held by " : ", ") + taker.comm + " " +
			common::FormatDuration(taker.ns);
	return text;
}

// What took most of the longest iteration, with the cause's name: "fork(): 48.0 ms (fork) in "
std::string CulpritText(const WorstIteration &iteration)
{
	const auto most = std::max_element(iteration.parts.begin(), iteration.parts.end(),
					   [](const Part &a, const Part &b) { return a.ns < b.ns; });
	if (most == iteration.parts.end() || !most->ns)
		return "";
	const analysis::Cause cause = most->cause;
	std::string what;
	switch (cause) {
	case analysis::Cause::Fork:
		what = "fork()";
		break;
	case analysis::Cause::RunQueue:
		what = "waiting for a CPU" + (iteration.holder.empty() ? "" : " held by " + iteration.holder);
		break;
	case analysis::Cause::ServerBusy:
		what = "the server's own code";
		break;
	case analysis::Cause::Stopped:
		what = "stopped by SIGSTOP";
		break;
	case analysis::Cause::CpuQuota:
		what = "throttled by the CPU quota";
		break;
	case analysis::Cause::Ptrace:
		what = "stopped by a tracer";
		break;
	case analysis::Cause::Fsync:
	case analysis::Cause::FileWrite:
	case analysis::Cause::FileRead:
	case analysis::Cause::FileMeta:
		what = std::string(analysis::CauseName(cause)) +
		       (iteration.detail.empty() ? "" : " of " + iteration.detail);
		break;
	default:
		what = analysis::InfoOf(cause).meaning;
	}
	return what + ": " + common::FormatDuration(most->ns) + " (" + analysis::AccountName(cause) + ") in ";
}

} // namespace

std::string ClockText(uint64_t realtime_ns)
{
	if (!realtime_ns)
		return "--:--:--";
	const time_t seconds = static_cast<time_t>(realtime_ns / kSecondNs);
	struct tm t;
	gmtime_r(&seconds, &t);
	return analysis::Format("%02d:%02d:%02d UTC", t.tm_hour, t.tm_min, t.tm_sec);
}

std::vector<std::string> FactsOf(const Frame &f)
{
	const Figures &s = f.second;
	std::vector<std::string> facts;
	for (const Open &open : s.open)
		facts.push_back("in progress: " + open.thread + ", " + analysis::AccountName(open.cause) +
				" for " + common::FormatDuration(open.so_far_ns) +
				(open.detail.empty() ? "" : ", " + open.detail));
	if (!f.event.text.empty())
		facts.push_back(ClockText(f.event.realtime_ns) + ": " + f.event.text);
	for (const Child &child : f.children)
		facts.push_back(ChildText(child, s));
	if (s.forks)
		facts.push_back(common::Plural(s.forks, "fork", "forks") + " in " +
				common::FormatDuration(s.fork_ns));
	if (s.fsyncs)
		facts.push_back(common::Plural(s.fsyncs, "fsync", "fsyncs") + " in " +
				common::FormatDuration(s.fsync_ns) + ", longest " +
				common::FormatDuration(s.fsync_longest_ns) +
				(s.fsync_file.empty() ? "" : " of " + s.fsync_file));
	if (std::string faults = FaultsText(s); !faults.empty())
		facts.push_back(faults);
	if (!s.taken.empty())
		facts.push_back(TakenText(s));
	if (s.disk_reads + s.disk_writes)
		facts.push_back("disk: " + common::Plural(s.disk_reads, "read", "reads") + ", " +
				common::Plural(s.disk_writes, "write", "writes") + ", " +
				common::FormatBytes(s.disk_bytes) + ", longest " +
				common::FormatDuration(s.disk_longest_ns));
	if (s.dropped)
		facts.push_back(common::Plural(s.dropped, "record was", "records were") +
				" dropped in this second: its figures are too low");
	for (const ThreadFigures &thread : s.threads)
		if (std::string doing = DoingText(thread); !thread.serves && !thread.child && !doing.empty())
			facts.push_back(thread.name + ": " + doing);
	return facts;
}

std::string StatusText(const Health &h)
{
	std::string text = "recorder";
	if (!h.recording)
		text = h.quiet_ns ? "no recorder: no data for " +
					common::FormatDuration(h.quiet_ns / kSecondNs * kSecondNs)
				  : "no recorder yet";
	if (h.cost_known)
		text += " CPU " + common::FormatPercent(h.cpu) + " + " +
			(h.bpf ? common::FormatPercent(*h.bpf) : "-") + " in kernel, " +
			common::FormatBytes(h.rss_bytes);
	text += analysis::Format(" | %s dropped", common::FormatCount(h.dropped).c_str());
	if (h.damaged)
		text +=
		    analysis::Format(", %s", common::Plural(h.damaged, "block lost", "blocks lost").c_str());
	text += " | ring " + common::FormatDuration(h.span_ns) + ", " + common::FormatBytes(h.bytes) +
		analysis::Format(", %u files", h.segments);
	return text;
}

std::string WorstText(const WorstIteration &iteration, uint64_t realtime_ns)
{
	std::string text = CulpritText(iteration);
	text += analysis::Format("%s%s at %s, ", iteration.sampled ? "at least " : "",
				 common::FormatDuration(iteration.duration_ns).c_str(),
				 ClockText(realtime_ns).c_str());
	text += iteration.thread_name;
	if (iteration.reads + iteration.writes)
		text += ", " + common::Plural(iteration.reads, "read", "reads") + ", " +
			common::Plural(iteration.writes, "write", "writes");
	if (!iteration.parts.empty())
		text += ": " + PartsText(iteration.parts, 4, iteration.duration_ns);
	if (!iteration.detail.empty())
		text += "; " + iteration.detail;
	if (!iteration.stack.empty())
		text += "; in " + iteration.stack;
	if (!iteration.holder.empty() && text.find("CPU held by") == std::string::npos)
		text += "; CPU held by " + iteration.holder;
	return text;
}

} // namespace forktail::live::watch
