// SPDX-License-Identifier: MIT
// The recorder knows when a process ended and how. The log knows which requests had no answer then.
#include "process_ends.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "analysis/timeline/serving.h"
#include "common/format/units.h"
#include "explanation.h"

namespace forktail::analysis
{

namespace
{

// The kernel closes a process' sockets about when its last thread ends: a client may see the end first.
constexpr uint64_t kClosedNs = 10'000'000;

// The server of the log that the process is, or -1.
int ServerOf(const Run &run, const ProcessEnd &end)
{
	if (end.child)
		return -1;
	for (size_t s = 0; s < std::max<size_t>(run.servers.size(), 1); s++) {
		std::string why;
		const uint32_t reported = s < run.server_pids.size() ? run.server_pids[s] : 0;
		const uint32_t pid =
		    reported ? reported
			     : ProcessOfServer(run, run.servers.empty() ? -1 : static_cast<int>(s), &why);
		if (pid == end.pid)
			return static_cast<int>(s);
	}
	return -1;
}

// A request that was never sent may have no connection: it counts for each server.
bool IsOf(const Run &run, const ServerEnd &end, size_t i)
{
	const Requests &q = run.requests;
	return q.status[i] == FT_STATUS_UNSENT ||
	       static_cast<int>(run.connections[q.connection[i]].server) == end.server;
}

// A process that took an ended one's place, as far as it was recorded.
void FindSuccessor(const Run &run, const ProcessEnd &of, ServerEnd *end)
{
	for (const Thread &t : run.threads) // by start
		if (t.flags == FT_THREAD_MAIN && t.start_ns > of.t_ns && t.comm == of.comm &&
		    !end->successor) {
			end->successor = t.tgid;
			end->began_ns = t.start_ns;
		}
}

uint64_t Unanswered(const ServerEnd &end)
{
	return end.failed + end.unsent;
}

} // namespace

std::string NameOf(const ProcessEnd &end)
{
	return end.comm + " (" + std::to_string(end.pid) + ")";
}

std::string FullCgroup(const Run &run, uint64_t t_ns)
{
	constexpr uint64_t before_ns = 10'000'000'000, after_ns = 1'000'000'000;
	std::set<std::string> full;
	for (const Series &s : run.series) {
		const auto label = s.labels.find("cgroup");
		if ((s.name != "cgroup.memory.limit_hits" && s.name != "cgroup.memory.oom_kills") ||
		    label == s.labels.end())
			continue;
		auto value = [&](uint64_t at_ns) {
			double v = 0;
			for (const Sample &sample : s.samples)
				if (sample.t_ns <= at_ns)
					v = sample.value;
			return v;
		};
		if (value(t_ns + after_ns) > value(t_ns - before_ns))
			full.insert(label->second);
	}
	return full.size() == 1 ? *full.begin() : "";
}

std::string SignalName(int signal)
{
	const char *name = sigabbrev_np(signal);
	return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::vector<ServerEnd> FindServerEnds(const Run &run, Log *log)
{
	std::vector<ServerEnd> ends(run.ended.size());
	bool any = false;
	for (size_t k = 0; k < ends.size(); k++) {
		ends[k].server = ServerOf(run, run.ended[k]);
		if (!run.ended[k].child)
			FindSuccessor(run, run.ended[k], &ends[k]);
		any |= ends[k].server >= 0;
	}
	if (!any)
		return ends;
	const Requests &q = run.requests;
	auto each = [&](auto see) {
		ForWindows(log, [&] {
			for (size_t i = q.lead; i < q.size(); i++)
				for (size_t k = 0; k < ends.size(); k++)
					if (ends[k].server >= 0 && IsOf(run, ends[k], i))
						see(i, run.ended[k].t_ns, &ends[k]);
		});
	};
	each([&](size_t i, uint64_t t_ns, ServerEnd *end) {
		if (q.sent_ns[i] > t_ns && !IsError(q.status[i]) &&
		    (!end->next_answer_ns || q.end_ns[i] < end->next_answer_ns))
			end->next_answer_ns = q.end_ns[i];
	});
	each([&](size_t i, uint64_t t_ns, ServerEnd *end) {
		if (!IsError(q.status[i]) || q.end_ns[i] + kClosedNs < t_ns ||
		    (end->next_answer_ns && q.due_ns[i] >= end->next_answer_ns))
			return;
		(q.status[i] == FT_STATUS_UNSENT ? end->unsent : end->failed)++;
	});
	return ends;
}

std::vector<Outage> OutagesOf(const Run &run, const std::vector<ServerEnd> &ends)
{
	std::vector<Outage> outages;
	for (size_t k = 0; k < ends.size(); k++)
		if (ends[k].server >= 0)
			outages.push_back({run.ended[k].t_ns,
					   ends[k].next_answer_ns ? ends[k].next_answer_ns : UINT64_MAX,
					   ends[k].server});
	return outages;
}

int OutageOf(const Explanation &e)
{
	int worst = -1;
	uint64_t most = 0;
	for (size_t k = 0; k < e.server_ends.size(); k++)
		if (const ServerEnd &end = e.server_ends[k]; end.server >= 0 && Unanswered(end) > most) {
			worst = static_cast<int>(k);
			most = Unanswered(end);
		}
	return most * 2 >= e.blame.errors ? worst : -1;
}

std::string HowText(const Run &run, const ProcessEnd &end)
{
	if (end.oom_killer) {
		const std::string cgroup = FullCgroup(run, end.t_ns);
		return ", killed by the kernel's OOM killer" + (cgroup.empty() ? "" : " in cgroup " + cgroup);
	}
	if (end.signal >= 0)
		return ", killed by " + SignalName(end.signal) + (end.core_dumped ? " (core dumped)" : "");
	return end.status >= 0 ? ", with status " + std::to_string(end.status) : "";
}

std::string OutageText(const Explanation &e)
{
	const int which = OutageOf(e);
	if (which < 0)
		return "";
	const ProcessEnd &process = e.run.ended[static_cast<size_t>(which)];
	const ServerEnd &end = e.server_ends[static_cast<size_t>(which)];
	std::string text = NameOf(process) + " exited ";
	text += process.t_ns > e.zero_ns
		    ? common::FormatDuration(process.t_ns - e.zero_ns) + " after the first request"
		    : common::FormatDuration(e.zero_ns - process.t_ns) + " before the first request";
	text += HowText(e.run, process) + ": ";
	if (end.unsent)
		text += common::Plural(end.unsent, "request was", "requests were") + " due and never sent" +
			(end.failed ? ", and " : "");
	if (end.failed)
		text += common::Plural(end.failed, "sent request", "sent requests") + " got no answer";
	text += end.next_answer_ns
		    ? ". The next answer came " + common::FormatDuration(end.next_answer_ns - process.t_ns) +
			  " after the exit"
		    : ". No request was answered after the exit";
	return text + " (no-server).";
}

std::vector<std::string> EndNotes(const Explanation &e)
{
	std::vector<std::string> notes;
	const int outage = OutageOf(e);
	for (size_t k = 0; k < e.run.ended.size(); k++) {
		const ProcessEnd &process = e.run.ended[k];
		const ServerEnd end = k < e.server_ends.size() ? e.server_ends[k] : ServerEnd();
		const bool after = !e.by_loops && process.t_ns >= e.first_ns + e.measured_ns;
		if (static_cast<int>(k) == outage || (after && process.status == 0))
			continue;
		std::string note = NameOf(process) +
				   (process.child ? ", a child of a recorded process," : "") + " exited at " +
				   common::FormatOffset(process.t_ns, e.zero_ns) + HowText(e.run, process);
		if (end.next_answer_ns)
			note += ": the next answer came " +
				common::FormatDuration(end.next_answer_ns - process.t_ns) + " later";
		if (end.successor)
			note += std::string(end.next_answer_ns ? ", " : ": ") + process.comm + " (" +
				std::to_string(end.successor) + ") was recorded from " +
				common::FormatOffset(end.began_ns, e.zero_ns) + " on";
		else if (!process.child && e.run.targets.size() > 1 && !after)
			note += std::string(end.next_answer_ns ? ", " : ": ") +
				"its replacement, if any, was not recorded";
		notes.push_back(note);
	}
	return notes;
}

} // namespace forktail::analysis
