// SPDX-License-Identifier: MIT
// Sentences about requests, slow requests, drops, cost and notes.
#include "sentences.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "common/format/units.h"
#include "layout.h"

namespace forktail::analysis
{

namespace
{

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
	if (SeenInKernel(run))
		return "";
	if (!open)
		return ", closed loop";
	return ", open loop at " + common::FormatCount(static_cast<uint64_t>(rate + 0.5)) + "/s" +
	       (poisson ? " (Poisson)" : "");
}

std::string ErrorsText(const Blame &b)
{
	static const char *const names[] = {"",	     "",	"error replies", "timed out",
					    "reset", "refused", "wrong",	 "never sent"};
	std::string text = common::Plural(b.errors, "error", "errors"), kinds;
	for (size_t s = 0; s < b.by_status.size(); s++)
		if (IsError(static_cast<uint8_t>(s)) && b.by_status[s])
			kinds += (kinds.empty() ? "" : ", ") + common::FormatCount(b.by_status[s]) + " " +
				 (s < std::size(names) ? names[s] : "of an unknown kind");
	return kinds.empty() ? text : text + " (" + kinds + ")";
}

// The records of a dropped block.
const char *DroppedRecords(uint32_t kind)
{
	switch (kind) {
	case FT_BLOCK_THREAD:
		return "thread names";
	case FT_BLOCK_SPAN:
		return "spans";
	case FT_BLOCK_TALLY:
		return "tallies";
	case FT_BLOCK_IO:
		return "block requests";
	case FT_BLOCK_CPU_SLICE:
		return "CPU slices of other tasks";
	case FT_BLOCK_LOOP:
	case FT_BLOCK_SOCKET:
		return "records of connections by thread";
	case FT_BLOCK_WRITES:
		return "file write totals";
	case FT_BLOCK_CONNECTION:
	case FT_BLOCK_REQUEST:
		return "requests";
	case FT_BLOCK_SAMPLE:
		return "metric samples";
	case FT_BLOCK_CPU_SAMPLE:
	case FT_BLOCK_COUNTERS:
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
			return "file write totals (ring full)";
		if (d.detail == FT_DROP_REQUESTS)
			return "events of requests (ring full)";
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
		return "threads (state table full)";
	case FT_DROP_UNWIND:
		return "callers or names of CPU samples (not unwound in time)";
	case FT_DROP_DISK:
		return std::string(DroppedRecords(d.detail)) + " (the recorder's disk was too slow)";
	case FT_DROP_LOG:
		return "entries of the request log";
	case FT_DROP_MISSED:
		return "runs of " + (d.detail < run.programs.size() ? run.programs[d.detail] : "a program") +
		       " (skipped by the kernel)";
	default:
		return "events";
	}
}

std::string RangeText(const char *name, const PercentileRange &range)
{
	if (!range.low)
		return "";
	return std::string(", ") + name +
	       (range.high ? " of all requests is from " + common::FormatDuration(range.low) + " to " +
				 common::FormatDuration(range.high)
			   : " of all requests is at least " + common::FormatDuration(range.low));
}

// " By its own count ...", after the account of the server's main thread; "" if it did not count.
std::string ServerCountText(const Explanation &e)
{
	if (!e.server_count)
		return "";
	const ServerCount &c = *e.server_count;
	const double ns = static_cast<double>(c.ns);
	return " By its own count (INFO, over " + common::FormatDuration(c.ns) +
	       ") its event loop was busy " + common::FormatPercent(static_cast<double>(c.loop_ns) / ns) +
	       " of the time, in commands " + common::FormatPercent(static_cast<double>(c.command_ns) / ns) +
	       "; it does not count polling and waiting for a CPU.";
}

// " It executed 1.3 instructions per cycle ..." of a thread; "" without counters.
std::string SpeedText(const Counted &c)
{
	if (!c.readings)
		return "";
	return Format(" It executed %.2f instructions per cycle at %.2f GHz", c.PerCycle(), c.Gigahertz()) +
	       (c.with_misses ? Format(", with %.2f cache misses per 1,000 instructions", c.Misses()) : "") +
	       (c.software ? " (software events in the place of counters)." : ".");
}

} // namespace

std::string ClockText(const Explanation &e, uint64_t t_ns)
{
	uint64_t realtime_ns = RealtimeNs(e.run, t_ns);
	time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
	struct tm utc;
	if (realtime_ns == 0 || !gmtime_r(&seconds, &utc))
		return "";
	char text[64];
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
	return Format("%s.%03d UTC", text, static_cast<int>(realtime_ns / 1'000'000 % 1000));
}

std::string ArrivalsText(const Explanation &e)
{
	const Arrivals &a = e.blame.arrivals;
	const Latencies &l = a.latencies;
	std::string text = "Until replies arrived at the client: p50 " + common::FormatDuration(l.p50) +
			   ", p99 " + common::FormatDuration(l.p99) + ", p99.9 " +
			   common::FormatDuration(l.p99_9) + ", p99.99 " + common::FormatDuration(l.p99_99) +
			   ", max " + common::FormatDuration(l.max) + "; replies were then unread for " +
			   common::FormatDuration(a.unread_ns / a.known) + " on average, " +
			   common::FormatDuration(a.longest_unread_ns) + " at most";
	if (a.known < e.blame.count - e.blame.errors)
		text += " (known for " + common::Plural(a.known, "request", "requests") + ")";
	return text;
}

std::string RequestsText(const Explanation &e)
{
	const Blame &b = e.blame;
	if (b.from_iterations)
		return Format(
			   "No request log: stalls are found from %s over %s of %s.",
			   common::Plural(b.count, "event-loop iteration", "event-loop iterations").c_str(),
			   common::FormatDuration(e.measured_ns).c_str(), "recording") +
		       " Iterations shorter than " + common::FormatDuration(e.run.min_span_ns) +
		       " are not included.";
	return common::Plural(b.count, "request", "requests") + " in " +
	       common::FormatDuration(e.measured_ns) + LoopText(e.run) + ", " + ErrorsText(b);
}

std::string SeenText(const Explanation &e)
{
	if (!SeenInKernel(e.run) || e.blame.from_iterations)
		return "";
	uint32_t sample = 1;
	bool slices = false;
	for (const Load &load : e.run.loads) {
		sample = std::max(sample, load.sample);
		slices |= load.slices;
	}
	std::string text =
	    "Requests were seen in the server's kernel, from arrival to reply; time in clients "
	    "and on the network is outside";
	if (sample > 1)
		text += ". 1 in " + common::FormatCount(sample) +
			" connections was sampled: counts are of the sample" +
			RangeText("p99", e.blame.p99_range) + RangeText("p99.9", e.blame.p99_9_range) +
			" (95 % confidence, if connections are alike)";
	if (slices)
		text += ". They were recorded in slices of the time";
	return text + ".";
}

std::string MarksText(const Explanation &e)
{
	constexpr size_t most = 8;
	const std::vector<Mark> &marks = e.run.marks;
	std::string text;
	for (size_t i = marks.size() - std::min(marks.size(), most); i < marks.size(); i++)
		text += (text.empty() ? "Marks: " : "; ") +
			Format("%+.3f s ", SecondsAfter(marks[i].t_ns, e.zero_ns)) + marks[i].text;
	if (marks.size() > most)
		text += "; and " + common::FormatCount(marks.size() - most) + " earlier";
	return text.empty() ? "" : text + ".";
}

std::string NetworkSplitText(const Explanation &e)
{
	constexpr double main_cause = 0.1;
	const NetworkSplit &split = e.blame.split;
	if (!split.requests || e.blame.RowOf(Cause::Network).share < main_cause)
		return "";
	return "Network: " + common::Plural(split.requests, "slow request was", "slow requests were") +
	       " seen in the server's kernel too; on the way to the server for " +
	       common::FormatDuration(split.to_server_ns) + ", unread there while its thread was idle for " +
	       common::FormatDuration(split.unread_at_server_ns) + ", replies on the way back for " +
	       common::FormatDuration(split.to_client_ns) + ", unread at the client for " +
	       common::FormatDuration(split.unread_at_client_ns) + ".";
}

std::string PercentilesText(const Latencies &l)
{
	return Format("p50 %s   p99 %s   p99.9 %s   p99.99 %s   max %s",
		      common::FormatDuration(l.p50).c_str(), common::FormatDuration(l.p99).c_str(),
		      common::FormatDuration(l.p99_9).c_str(), common::FormatDuration(l.p99_99).c_str(),
		      common::FormatDuration(l.max).c_str());
}

std::string SlowText(const Explanation &e)
{
	const Blame &b = e.blame;
	const uint64_t unknown_ns = b.RowOf(Cause::Unknown).total_ns();
	std::string things = b.from_iterations ? common::Plural(b.slow_count, "iteration", "iterations")
					       : common::Plural(b.slow_count, "request", "requests");
	std::string limit = " of " + common::FormatDuration(b.threshold_ns) + " or more";
	if (b.slow.empty())
		return "No " + std::string(b.from_iterations ? "iteration" : "request") + limit + ".";
	double explained =
	    1 - static_cast<double>(unknown_ns) / static_cast<double>(std::max<uint64_t>(b.slow_ns, 1));
	return things + limit + " in " + common::Plural(e.episodes.size(), "episode", "episodes") + "; " +
	       common::FormatPercent(unknown_ns ? std::min(explained, 0.99999) : 1) +
	       " of their time is explained";
}

std::vector<std::string> AccountTexts(const Explanation &e)
{
	std::vector<std::string> texts;
	std::vector<int> seen;
	bool told = false; // the event loop that INFO has is the main thread's
	for (int thread : e.serving) {
		if (thread < 0 || std::find(seen.begin(), seen.end(), thread) != seen.end())
			continue;
		seen.push_back(thread);
		const Account &a = e.accounts[static_cast<size_t>(thread)];
		const Thread &t = e.run.threads[static_cast<size_t>(thread)];
		if (a.wall_ns == 0)
			continue;
		double wall = static_cast<double>(a.wall_ns);
		uint64_t own = a.by_cause[Index(Cause::ServerBusy)], idle = a.by_cause[Index(Cause::Idle)],
			 stalls = 0;
		for (int c = 0; c < kTimelineCauses; c++)
			if (IsStall(static_cast<Cause>(c)))
				stalls += a.by_cause[c];
		const std::string place = PlaceOf(e.run, t);
		const bool first_main = t.tid == t.tgid && !std::exchange(told, true);
		texts.push_back("Server thread " + (t.role.empty() ? t.comm : t.role) + " (" +
				std::to_string(t.tid) + ")" + (place.empty() ? "" : " of " + place) + ": " +
				common::FormatDuration(a.wall_ns) + " recorded, " +
				common::FormatPercent(static_cast<double>(a.accounted_ns) / wall) +
				" of it accounted for: own code " +
				common::FormatPercent(static_cast<double>(own) / wall) + ", stalls " +
				common::FormatPercent(static_cast<double>(stalls) / wall) + ", idle " +
				common::FormatPercent(static_cast<double>(idle) / wall) + "." +
				SpeedText(t.counted) + (first_main ? ServerCountText(e) : ""));
	}
	return texts;
}

std::vector<std::string> DropTexts(const Explanation &e)
{
	std::vector<std::string> texts;
	if (e.run.drops.empty()) {
		if (!e.run.threads.empty())
			texts.push_back("No events were dropped.");
		return texts;
	}
	for (size_t i = 0; i < e.run.drops.size(); i++) {
		if (i == 5) {
			texts.push_back(
			    "... and " +
			    common::Plural(e.run.drops.size() - i, "more interval", "more intervals") +
			    " with drops; --json lists them all.");
			break;
		}
		const ft_drop &d = e.run.drops[i];
		texts.push_back("Dropped: " + common::FormatCount(d.count) + " " + DropText(e.run, d) +
				" between " + common::FormatOffset(d.start_ns, e.zero_ns) + " and " +
				common::FormatOffset(d.end_ns, e.zero_ns) + ".");
	}
	return texts;
}

std::string CostText(const Explanation &e)
{
	const Cost &c = e.run.cost;
	const RecordingFile *recorder = nullptr;
	for (const RecordingFile &f : e.run.files)
		if (f.program == "forktail-record" && f.overlaid)
			recorder = &f;
	if (!c.known || !recorder)
		return "";
	uint64_t runs = 0;
	for (const ProgramCost &p : c.programs)
		runs += p.runs;
	uint64_t end_ns = recorder->end_ns ? recorder->end_ns : e.run.end_ns;
	double wall = static_cast<double>(end_ns > recorder->start_ns ? end_ns - recorder->start_ns : 0);
	std::string text = "Recording cost: BPF programs took ";
	if (runs && wall > 0)
		text += common::FormatDuration(c.bpf_ns) + " (" +
			common::FormatPercent(static_cast<double>(c.bpf_ns) / wall) + " of one CPU" +
			(c.bpf_ns_is_estimate ? ", estimated" : "") + "), " + common::FormatCount(runs) +
			" runs of " + common::FormatDuration(c.bpf_ns / runs) + " on average";
	else
		text += "an unknown time (the recording is too short)";
	text += "; the recorder took " + common::FormatDuration(c.recorder_cpu_ns) + " of CPU";
	if (wall > 0)
		text += " (" + common::FormatPercent(static_cast<double>(c.recorder_cpu_ns) / wall) + ")";
	if (c.load_cpu_ns)
		text += ", " + common::FormatDuration(c.load_cpu_ns) + " more to load its programs";
	if (c.recorder_rss_bytes)
		text += ", and " + common::FormatBytes(c.recorder_rss_bytes) + " of memory";
	return text + ".";
}

// The bounds of the hosts' clocks, and the time that is unattributed because of them.
void AddClockTexts(const Explanation &e, std::vector<std::string> *texts)
{
	const std::vector<HostClock> &clocks = e.run.host_clocks;
	for (size_t i = 1; i < clocks.size(); i++) {
		char drift[32];
		snprintf(drift, sizeof drift, "%+.2f", clocks[i].drift_ppm);
		texts->push_back("Clocks: times of " + clocks[i].host + " are converted to the clock of " +
				 clocks[0].host + ", within " + common::FormatDuration(clocks[i].bound_ns) +
				 " (" + common::Plural(clocks[i].samples, "round trip", "round trips") +
				 ", drift " + drift + " ppm).");
	}
	if (e.blame.clocks_ns)
		texts->push_back(
		    "Clocks: " + common::FormatDuration(e.blame.clocks_ns) +
		    " of the unattributed time is so close to a transfer between hosts that their clocks "
		    "cannot assign it to one of them.");
}

std::vector<std::string> NoteTexts(const Explanation &e)
{
	std::vector<std::string> texts;
	AddClockTexts(e, &texts);
	for (const std::string &note : e.notes)
		texts.push_back("Note: " + note + ".");
	for (const std::string &warning : e.run.warnings)
		texts.push_back("Warning: " + warning + ".");
	for (const Missing &m : e.run.missing)
		texts.push_back("Not recorded: " + m.what + (m.why.empty() ? "" : ": " + m.why) + ".");
	return texts;
}

} // namespace forktail::analysis
