// SPDX-License-Identifier: MIT
// See sentences.h.
#include "sentences.h"

#include <algorithm>
#include <ctime>

#include "analysis/text.h"
#include "common/format/units.h"

namespace forktail::live::watch
{

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
		text += " CPU " + common::FormatPercent(h.cpu) + " + " + common::FormatPercent(h.bpf) +
			" in kernel, " + common::FormatBytes(h.rss_bytes);
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
