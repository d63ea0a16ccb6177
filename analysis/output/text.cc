// SPDX-License-Identifier: MIT
// The explanation as text: what a tired engineer reads at three in the morning. Plain ASCII, 100 columns,
// the answer first.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "analysis/blame/hops.h"
#include "analysis/units.h"
#include "explain.h"

namespace forktail
{

namespace
{

constexpr size_t kColumns = 100;
constexpr double kSmallShare = 0.001; // causes below it are counted, not listed

std::string Format(const char *format, ...) __attribute__((format(printf, 1, 2)));
std::string Format(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return text;
}

// `text` broken at spaces; the first line after `first` columns that are already there, others indented.
std::string Wrap(const std::string &text, size_t first, size_t indent)
{
	std::string out;
	size_t column = first;
	bool starts_line = true;
	for (size_t at = 0; at < text.size();) {
		size_t end = std::min(text.find(' ', at), text.size());
		size_t length = end - at;
		if (!starts_line && column + 1 + length > kColumns) {
			out += "\n" + std::string(indent, ' ');
			column = indent;
			starts_line = true;
		}
		if (!starts_line) {
			out += ' ';
			column++;
		}
		out.append(text, at, length);
		column += length;
		starts_line = false;
		at = end + 1;
	}
	return out + "\n";
}

struct Writer {
	const Explanation &e;
	const ExplainOptions &options;
	std::string out;

	std::string Strong(const std::string &text) const
	{
		return options.colour ? "\033[1m" + text + "\033[0m" : text;
	}
	void Line(const std::string &text) { out += Wrap(text, 0, 0); }
};

std::string LoopText(const Run &run)
{
	double rate = 0;
	bool open = false, poisson = false;
	for (const Load &load : run.loads) {
		open |= load.arrival != "closed";
		poisson |= load.arrival == "poisson";
		rate += load.rate;
	}
	if (run.loads.empty())
		return "";
	if (!open)
		return ", closed loop";
	return ", open loop at " + FormatCount(static_cast<uint64_t>(rate + 0.5)) + "/s" +
	       (poisson ? " (Poisson)" : "");
}

std::string ErrorsText(const Blame &b)
{
	static const char *const names[] = {"",	     "",	"error replies", "timed out",
					    "reset", "refused", "wrong",	 "never sent"};
	std::string text = Plural(b.errors, "error", "errors"), kinds;
	for (size_t s = 0; s < b.by_status.size(); s++)
		if (IsError(static_cast<uint8_t>(s)) && b.by_status[s])
			kinds += (kinds.empty() ? "" : ", ") + FormatCount(b.by_status[s]) + " " +
				 (s < std::size(names) ? names[s] : "of an unknown kind");
	return kinds.empty() ? text : text + " (" + kinds + ")";
}

// The date and time that offsets count from, in UTC, as logs have it.
void WriteClock(Writer *w)
{
	uint64_t realtime_ns = RealtimeNs(w->e.run, w->e.zero_ns);
	time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
	struct tm utc;
	if (realtime_ns == 0 || !gmtime_r(&seconds, &utc))
		return;
	char text[64];
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
	w->Line(Format("+0.000 s is %s.%03d UTC.", text, static_cast<int>(realtime_ns / 1'000'000 % 1000)));
}

// The same as the client's host saw it.
void WriteArrivals(Writer *w)
{
	const Arrivals &a = w->e.blame.arrivals;
	const Latencies &l = a.latencies;
	std::string text = "Until answers arrived: p50 " + FormatDuration(l.p50) + ", p99 " +
			   FormatDuration(l.p99) + ", p99.9 " + FormatDuration(l.p99_9) + ", p99.99 " +
			   FormatDuration(l.p99_99) + ", max " + FormatDuration(l.max) +
			   "; they lay unread at the client for " + FormatDuration(a.unread_ns / a.known) +
			   " on average, " + FormatDuration(a.longest_unread_ns) + " at most";
	if (a.known < w->e.blame.count - w->e.blame.errors)
		text += " (known of " + Plural(a.known, "request", "requests") + ")";
	w->Line(text);
}

void WriteSummary(Writer *w)
{
	const Blame &b = w->e.blame;
	if (b.from_iterations)
		w->Line(Format("No request log: stalls found from %s over %s of %s.",
			       Plural(b.count, "event-loop iteration", "event-loop iterations").c_str(),
			       FormatDuration(w->e.measured_ns).c_str(), "recording") +
			" Iterations below " + FormatDuration(w->e.run.min_span_ns) + " are not among them.");
	else
		w->Line(Plural(b.count, "request", "requests") + " in " + FormatDuration(w->e.measured_ns) +
			LoopText(w->e.run) + ", " + ErrorsText(b));
	if (b.count == b.errors) {
		w->Line("No request was answered.");
		return;
	}
	const Latencies &l = b.latencies;
	w->out += Format("p50 %s   p99 %s   p99.9 %s   p99.99 %s   max %s\n", FormatDuration(l.p50).c_str(),
			 FormatDuration(l.p99).c_str(), FormatDuration(l.p99_9).c_str(),
			 FormatDuration(l.p99_99).c_str(), FormatDuration(l.max).c_str());
	if (w->e.blame.arrivals.known)
		WriteArrivals(w);
}

void WriteSlow(Writer *w)
{
	const Blame &b = w->e.blame;
	uint64_t unknown_ns = 0;
	for (const CauseRow &row : b.causes)
		if (row.cause == Cause::Unknown)
			unknown_ns = row.total_ns();
	w->out += "\n";
	std::string things = b.from_iterations ? Plural(b.slow_count, "iteration", "iterations")
					       : Plural(b.slow_count, "request", "requests");
	std::string limit = " of " + FormatDuration(b.threshold_ns) + " or more";
	if (b.slow.empty()) {
		w->Line("No " + std::string(b.from_iterations ? "iteration" : "request") + limit + ".");
		return;
	}
	double explained =
	    1 - static_cast<double>(unknown_ns) / static_cast<double>(std::max<uint64_t>(b.slow_ns, 1));
	w->Line(things + limit + " in " + Plural(w->e.episodes.size(), "episode", "episodes") + "; " +
		FormatPercent(unknown_ns ? std::min(explained, 0.99999) : 1) + " of their time is explained");
}

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
				 CauseName(row.cause), FormatCount(row.requests).c_str(),
				 FormatDuration(row.total_ns()).c_str(), FormatPercent(row.share).c_str(),
				 what_if ? FormatDuration(row.without.p99_9).c_str() : "-",
				 what_if ? FormatDuration(row.without.max).c_str() : "-");
	}
	if (small)
		w->out += Format("(%s below %s each)\n", Plural(small, "more cause", "more causes").c_str(),
				 FormatPercent(kSmallShare).c_str());
	if (copies)
		w->Line(
		    "Without cow-copy somewhat less would be left than it says: what a copy costs outside "
		    "its page fault is in own code.");
}

// Where the time went, when requests came by more than one process.
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
		std::string line =
		    Format("%-*s %-8s %10s %10s %8s   ", static_cast<int>(width), names[i].c_str(),
			   roles[i].c_str(), FormatCount(row.requests).c_str(),
			   FormatDuration(row.time_ns).c_str(), FormatPercent(row.share).c_str());
		std::string causes = row.causes.empty() ? "-" : "";
		for (size_t c = 0; c < row.causes.size() && c < causes_shown; c++) {
			double share = static_cast<double>(row.causes[c].time_ns) /
				       static_cast<double>(std::max<uint64_t>(row.time_ns, 1));
			std::string one = std::string(c ? ", " : "") + CauseName(row.causes[c].cause) + " " +
					  FormatShare(share);
			if (c &&
			    (share < worth_listing || line.size() + causes.size() + one.size() > kColumns))
				break;
			causes += one;
		}
		w->out += line + causes + "\n";
	}
	if (b.hops.size() > rows)
		w->out += "(" + Plural(b.hops.size() - rows, "more hop", "more hops") + ")\n";
	uint64_t between = b.slow_ns - at_hops;
	w->out += Format("%-*s %-8s %10s %10s %8s\n", static_cast<int>(width), "(at none)", "-", "-",
			 FormatDuration(between).c_str(),
			 FormatPercent(static_cast<double>(between) /
				       static_cast<double>(std::max<uint64_t>(b.slow_ns, 1)))
			     .c_str());
}

void WriteEpisodes(Writer *w)
{
	std::vector<uint32_t> worst = WorstEpisodes(w->e.episodes, w->options.episodes);
	if (worst.empty())
		return;
	const char *one = w->e.blame.from_iterations ? "iteration" : "request";
	const char *many = w->e.blame.from_iterations ? "iterations" : "requests";
	w->out += "\n" +
		  w->Strong(worst.size() < w->e.episodes.size()
				? "The " + Plural(worst.size(), "worst episode", "worst episodes")
				: std::string("Episodes, worst first")) +
		  "\n";
	int number = 0;
	for (uint32_t index : worst) {
		const Episode &e = w->e.episodes[index];
		std::string head = Format(
		    "%-2d %s  %s  %s, worst %s", ++number, FormatOffset(e.start_ns, w->e.zero_ns).c_str(),
		    FormatDuration(e.end_ns - e.start_ns).c_str(), Plural(e.requests, one, many).c_str(),
		    FormatDuration(e.worst_ns).c_str());
		std::string causes;
		for (size_t c = 0; c < e.causes.size() && c < 3; c++) {
			if (c && e.causes[c].share < 0.01)
				break;
			causes += (causes.empty() ? ": " : ", ") + std::string(CauseName(e.causes[c].cause)) +
				  " " + FormatShare(e.causes[c].share);
		}
		if (w->e.blame.hops.size() > 1 && !e.hops.empty())
			causes +=
			    "; " + FormatShare(e.hops[0].share) + " at " +
			    HopNameOf(w->e.run, w->e.timelines, e.hops[0].hop, w->e.blame.from_iterations)
				.text();
		w->out += Wrap(head + causes, 0, 3);
		for (const std::string &sentence : e.evidence)
			w->out += "   " + Wrap(sentence, 3, 5);
	}
}

// What the serving threads' own code was, as far as samples say.
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
		  w->Strong(Format("%-*s %8s %10s %8s   %s", static_cast<int>(width), "own code", "samples",
				   "time", "share", "seen in")) +
		  "\n";
	size_t shown = 0;
	for (const ActivityTime &a : own.activities) {
		if (shown == rows || (shown && a.share < worth_listing))
			break;
		shown++;
		std::string row = Format("%-*s %8s %10s %8s   ", static_cast<int>(width), a.name.c_str(),
					 FormatCount(a.samples).c_str(), FormatDuration(a.time_ns).c_str(),
					 FormatPercent(a.share).c_str());
		std::string seen = a.stack; // whole names only: callers that don't fit are left out
		while (row.size() + seen.size() > kColumns && !seen.empty()) {
			size_t last = seen.rfind(" < ");
			seen.erase(last == std::string::npos ? 0 : last);
		}
		w->out += row + seen + "\n";
	}
	if (shown < own.activities.size())
		w->out +=
		    "(" + Plural(own.activities.size() - shown, "more activity", "more activities") + ")\n";
}

void WriteAccount(Writer *w)
{
	std::vector<int> seen;
	for (int thread : w->e.serving) {
		if (thread < 0 || std::find(seen.begin(), seen.end(), thread) != seen.end())
			continue;
		seen.push_back(thread);
		const Account &a = w->e.accounts[static_cast<size_t>(thread)];
		const Thread &t = w->e.run.threads[static_cast<size_t>(thread)];
		if (a.wall_ns == 0)
			continue;
		double wall = static_cast<double>(a.wall_ns);
		uint64_t own = a.by_cause[Index(Cause::ServerBusy)], idle = a.by_cause[Index(Cause::Idle)],
			 stalls = 0;
		for (int c = 0; c < kTimelineCauses; c++)
			if (IsStall(static_cast<Cause>(c)))
				stalls += a.by_cause[c];
		std::string place = PlaceOf(w->e.run, t);
		w->Line("Server thread " + (t.role.empty() ? t.comm : t.role) + " (" + std::to_string(t.tid) +
			")" + (place.empty() ? "" : " of " + place) + ": " + FormatDuration(a.wall_ns) +
			" recorded, " + FormatPercent(static_cast<double>(a.accounted_ns) / wall) +
			" of it accounted for: own code " + FormatPercent(static_cast<double>(own) / wall) +
			", stalls " + FormatPercent(static_cast<double>(stalls) / wall) + ", idle " +
			FormatPercent(static_cast<double>(idle) / wall) + ".");
	}
}

// What a block that was dropped held.
const char *DroppedRecords(uint32_t kind)
{
	switch (kind) {
	case FT_BLOCK_THREAD:
		return "names of threads";
	case FT_BLOCK_SPAN:
		return "spans";
	case FT_BLOCK_TALLY:
		return "tallies";
	case FT_BLOCK_IO:
		return "block requests";
	case FT_BLOCK_TURN:
		return "turns of other tasks";
	case FT_BLOCK_LOOP:
	case FT_BLOCK_SOCKET:
		return "connections of threads";
	case FT_BLOCK_WRITES:
		return "sums of files' writes";
	case FT_BLOCK_SAMPLE:
		return "samples of metrics";
	case FT_BLOCK_CPU_SAMPLE:
		return "CPU samples";
	case FT_BLOCK_DETAIL:
	case FT_BLOCK_STACK:
	case FT_BLOCK_SERIES:
		return "names";
	default:
		return "records";
	}
}

std::string DropText(const Run &run, const ft_drop &d)
{
	switch (d.source) {
	case FT_DROP_RING:
		if (d.detail == FT_DROP_TALLY)
			return "tallies (ring full)";
		if (d.detail == FT_DROP_BLOCK_IO)
			return "block requests (ring full)";
		if (d.detail == FT_DROP_CPU_SAMPLE)
			return "CPU samples (ring full)";
		if (d.detail == FT_DROP_WRITES)
			return "sums of files' writes (ring full)";
		if (d.detail == FT_DROP_THREAD_EVENT)
			return "thread events (ring full)";
		return std::string(d.detail == FT_ITERATION ? "iteration"
							    : AccountName(CauseOfOwner(d.detail))) +
		       " spans (ring full)";
	case FT_DROP_STACK:
		return "frames (nested too deep)";
	case FT_DROP_IO:
		return "block requests (table full)";
	case FT_DROP_THREAD:
		return "threads (no room for their state)";
	case FT_DROP_UNWIND:
		return "callers or names of CPU samples (not unwound in time)";
	case FT_DROP_DISK:
		return std::string(DroppedRecords(d.detail)) + " (the recorder's disk took too long)";
	case FT_DROP_LOG:
		return "requests of the log";
	case FT_DROP_MISSED:
		return "runs of " + (d.detail < run.programs.size() ? run.programs[d.detail] : "a program") +
		       " (skipped by the kernel)";
	default:
		return "events";
	}
}

void WriteDrops(Writer *w)
{
	if (w->e.run.drops.empty()) {
		if (!w->e.run.threads.empty())
			w->Line("No events were dropped.");
		return;
	}
	for (size_t i = 0; i < w->e.run.drops.size(); i++) {
		if (i == 5) {
			w->Line("... and " +
				Plural(w->e.run.drops.size() - i, "more interval", "more intervals") +
				" with drops; --json lists them all.");
			break;
		}
		const ft_drop &d = w->e.run.drops[i];
		w->Line("Dropped: " + FormatCount(d.count) + " " + DropText(w->e.run, d) + " between " +
			FormatOffset(d.start_ns, w->e.zero_ns) + " and " +
			FormatOffset(d.end_ns, w->e.zero_ns) + ".");
	}
}

void WriteCost(Writer *w)
{
	const Cost &c = w->e.run.cost;
	const RecordingFile *recorder = nullptr;
	for (const RecordingFile &f : w->e.run.files)
		if (f.program == "forktail-record" && f.overlaid)
			recorder = &f;
	if (!c.known || !recorder)
		return;
	uint64_t runs = 0;
	for (const ProgramCost &p : c.programs)
		runs += p.runs;
	uint64_t end_ns = recorder->end_ns ? recorder->end_ns : w->e.run.end_ns;
	double wall = static_cast<double>(end_ns > recorder->start_ns ? end_ns - recorder->start_ns : 0);
	std::string text = "Recording cost: BPF programs ";
	if (runs && wall > 0)
		text += FormatDuration(c.bpf_ns) + " (" +
			FormatPercent(static_cast<double>(c.bpf_ns) / wall) + " of one CPU" +
			(c.bpf_ns_is_estimate ? ", estimated" : "") + "), " + FormatCount(runs) +
			" runs of " + FormatDuration(c.bpf_ns / runs) + " on average";
	else
		text += "not measured (the recording is too short)";
	text += "; recorder " + FormatDuration(c.recorder_cpu_ns) + " of CPU";
	if (wall > 0)
		text += " (" + FormatPercent(static_cast<double>(c.recorder_cpu_ns) / wall) + ")";
	if (c.load_cpu_ns)
		text += " besides " + FormatDuration(c.load_cpu_ns) + " to load its programs";
	if (c.recorder_rss_bytes)
		text += ", " + FormatBytes(c.recorder_rss_bytes) + " of memory";
	w->Line(text + ".");
}

void WriteNotes(Writer *w)
{
	for (const std::string &note : w->e.notes)
		w->Line("Note: " + note + ".");
	for (const std::string &warning : w->e.run.warnings)
		w->Line("Warning: " + warning + ".");
	for (const Missing &m : w->e.run.missing)
		w->Line("Not recorded: " + m.what + (m.why.empty() ? "" : ": " + m.why) + ".");
}

} // namespace

std::string ExplainText(const Explanation &explanation, const ExplainOptions &options)
{
	Writer w = {explanation, options, {}};
	WriteSummary(&w);
	WriteSlow(&w);
	WriteCauses(&w);
	WriteHops(&w);
	WriteEpisodes(&w);
	WriteOwnCode(&w);
	w.out += "\n";
	WriteClock(&w);
	WriteAccount(&w);
	WriteDrops(&w);
	WriteCost(&w);
	WriteNotes(&w);
	return w.out;
}

} // namespace forktail
