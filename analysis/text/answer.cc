// SPDX-License-Identifier: MIT
// Composes the first line of an answer. passes/lead.h decides which causes it speaks of.
#include "answer.h"

#include <algorithm>
#include <map>

#include "analysis/blame/held.h"
#include "analysis/explain/overload.h"
#include "analysis/explain/process_ends.h"
#include "analysis/run/hosts.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// The noun in "Without ... p99.9 would be".
const char *WithoutWhat(Cause cause)
{
	switch (cause) {
	case Cause::Fork:
		return "forks";
	case Cause::CowCopy:
	case Cause::CowReuse:
		return "copy-on-write faults";
	case Cause::PageZero:
	case Cause::PageFile:
	case Cause::PageIn:
	case Cause::PageFault:
		return "these page faults";
	case Cause::RunQueue:
	case Cause::SoftirqDeferred:
		return "these waits for a CPU";
	case Cause::CpuQuota:
		return "the quota";
	default:
		return "it";
	}
}

// "p99.9 would be 8.90 ms instead of 31.3 ms".
std::string FigureText(const Explanation &e, uint64_t without_ns)
{
	const NamedLatency &figure = *e.lead.figure;
	return std::string(figure.percentile < 100 ? figure.name : "the maximum") + " would be " +
	       common::FormatDuration(without_ns) + " instead of " +
	       common::FormatDuration(e.blame.latencies.*figure.value);
}

std::string WhatIfText(const Explanation &e)
{
	const Lead &lead = e.lead;
	if (!lead.without_ns)
		return "";
	const size_t count = lead.causes.size();
	std::string text = std::string(" Without ") + (count == 1   ? WithoutWhat(lead.causes[0])
						       : count == 2 ? "both"
								    : "all of them");
	text += " " + FigureText(e, lead.without_ns) + ".";
	if (lead.next)
		text += std::string(" Next is ") + CauseName(*lead.next) + ": without it " +
			FigureText(e, lead.without_next_ns) + ".";
	return text;
}

// "waiting for 10.0.0.7:6379, which was not recorded"; "" without unrecorded peers.
std::string WaitingFor(const Explanation &e, const std::string &begin)
{
	constexpr size_t named = 3;
	const std::set<std::string> &peers = e.unrecorded_peers;
	std::string text;
	size_t count = 0;
	for (const std::string &peer : peers)
		if (count++ < named)
			text += (text.empty() ? begin : ", ") + peer;
	if (count > named)
		text += " or " + common::Plural(peers.size() - named, "other", "others");
	return text.empty()
		   ? ""
		   : text + (peers.size() > 1 ? ", which were not recorded" : ", which was not recorded");
}

// Whether the whole time on the network is known to be outside the server: its kernel saw when requests
// arrived and replies left.
bool NetworkIsSeen(const Explanation &e)
{
	constexpr double nearly_all = 0.8;
	const NetworkSplit &split = e.blame.split;
	return static_cast<double>(split.to_server_ns + split.to_client_ns) >=
	       nearly_all * static_cast<double>(e.blame.RowOf(Cause::Network).total_ns());
}

// Whether the load generator reached each server by an address of its own host.
bool OnOneHost(const Run &run)
{
	return !SeveralHosts(run) && !run.servers.empty() && std::ranges::all_of(run.servers, IsLocalAddress);
}

// What is known of time in which the server was idle and the load generator waited.
std::string NetworkClause(const Explanation &e)
{
	if (NetworkIsSeen(e))
		return "Requests or replies were outside the server's host";
	return std::string("The server was idle and no answer came: ") +
	       (OnOneHost(e.run)
		    ? "something between it and the load generator on this host delayed data, or "
		      "the server held the requests"
		    : "the network delayed data, or the server held the requests");
}

// A recorded process that could not answer while the server waited; "" without one. Nothing shows that it was
// waited for.
std::string MeanwhileText(const Explanation &e, Cause cause)
{
	const auto found = e.culprits.find(cause);
	return found == e.culprits.end() || found->second.clause.empty()
		   ? ""
		   : " Meanwhile " + found->second.clause + ".";
}

// How to find out what is not known.
std::string NetworkAdvice(const Explanation &e)
{
	if (NetworkIsSeen(e))
		return "";
	return MeanwhileText(e, Cause::Network) +
	       (e.run.kernel_log_joined ? "" : " To see which, record with --requests.");
}

// Names what makes the server hold requests, as far as it is known: a command of these requests that blocks,
// or calls that pause clients.
std::string HeldClause(const Explanation &e)
{
	constexpr double worth_naming = 0.05; // of the held requests; the others may wait behind them
	const Blame &b = e.blame;
	std::map<uint8_t, uint64_t> by_op;
	uint64_t held = 0;
	for (const SlowRequest &r : b.slow)
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
			if (b.parts[p].cause == Cause::Held) {
				by_op[r.op]++;
				held++;
			}
	for (const auto &[op, count] : by_op)
		if (op < e.run.ops.size() && IsBlockingCommand(e.run.ops[op]) &&
		    static_cast<double>(count) >= worth_naming * static_cast<double>(held))
			return "Requests of " + e.run.ops[op] +
			       ", which blocks until something happens, and those behind them waited while "
			       "the server "
			       "was idle";
	std::string pauses;
	for (const auto &[command, calls] : e.pauses)
		pauses +=
		    (pauses.empty() ? "" : ", ") + common::Plural(calls, "call", "calls") + " of " + command;
	return "The server had read requests and held them while it was idle" +
	       (pauses.empty() ? "" : " (it counted " + pauses + ", which pauses clients)");
}

// What happened, for a cause that has no other words.
std::string ClauseOf(const Explanation &e, Cause cause)
{
	if (cause == Cause::Network)
		return NetworkClause(e);
	if (cause == Cause::Held)
		return HeldClause(e);
	const auto found = e.culprits.find(cause);
	if (found != e.culprits.end() && !found->second.clause.empty())
		return found->second.clause;
	return InfoOf(cause).meaning;
}

std::string AdviceOf(const Explanation &e, Cause cause)
{
	const auto found = e.culprits.find(cause);
	return found == e.culprits.end() || found->second.advice.empty() ? "" : " " + found->second.advice;
}

std::string ShareText(const Explanation &e, Cause cause)
{
	return common::FormatPercent(e.blame.RowOf(cause).share);
}

// Clauses begin with a capital letter, unless they begin with a name.
std::string Continued(std::string clause)
{
	for (const char *word : {"The ", "Requests ", "Hardware ", "Soft "})
		if (clause.starts_with(word))
			clause[0] = static_cast<char>(std::tolower(clause[0]));
	return clause;
}

// "fork() took 20 ms and fsync() took 31 ms: 80 % of the slow requests' time (fork 50 %, fsync 30 %)".
std::string CausesText(const Explanation &e, const std::string &of_time)
{
	const std::vector<Cause> &causes = e.lead.causes;
	std::string clauses, shares;
	double share = 0;
	for (Cause cause : causes) {
		const std::string clause = ClauseOf(e, cause);
		clauses += clauses.empty()	    ? clause
			   : cause == causes.back() ? ", and " + Continued(clause)
						    : ", " + Continued(clause);
		shares += (shares.empty() ? "" : ", ") + std::string(CauseName(cause)) +
			  (causes.size() > 1 ? " " + ShareText(e, cause) : "");
		share += e.blame.RowOf(cause).share;
	}
	return clauses + ": " + common::FormatPercent(share) + of_time + " (" + shares + ")";
}

// The load generator's own delays first, the largest cause at the server in the same sentence.
std::string LateText(const Explanation &e, const std::string &of_time)
{
	constexpr double least = 0.05;
	std::string what = ClauseOf(e, Cause::ClientLate);
	if (const std::string subject = "The load generator "; what.starts_with(subject))
		what = "it " + what.substr(subject.size());
	std::string text = "The load generator itself delayed " + ShareText(e, Cause::ClientLate) + of_time +
			   " (client-late), which is an error of measurement: " + Continued(what);
	const Cause first = e.lead.causes[0];
	if (e.lead.without_ns || e.blame.RowOf(first).share >= least)
		text += "; besides, " + Continued(CausesText(e, " of that time"));
	return text;
}

// Why time has no recorded cause, as far as it is known, and what to do about it.
std::string WhyUnattributed(const Explanation &e)
{
	uint64_t dropped = 0, from_ns = UINT64_MAX, to_ns = 0;
	for (const ft_drop &d : e.run.drops) {
		if (d.source == FT_DROP_RING && d.detail == FT_DROP_REQUESTS)
			continue; // of other requests
		dropped += d.count;
		from_ns = std::min(from_ns, d.start_ns);
		to_ns = std::max(to_ns, d.end_ns);
	}
	if (dropped)
		return ": " + common::Plural(dropped, "event was", "events were") + " dropped between " +
		       common::FormatOffset(from_ns, e.zero_ns) + " and " +
		       common::FormatOffset(to_ns, e.zero_ns) + ".";
	if (e.run.threads.empty())
		return ": the server was not recorded. Run forktail record on its host during the load.";
	if (e.blame.unserved_requests)
		return ": the serving thread of " +
		       common::Plural(e.blame.unserved_requests, "request", "requests") + " is not known.";
	uint64_t first = UINT64_MAX, last = 0;
	for (const Timeline &t : e.timelines)
		if (t.thread < e.run.threads.size()) {
			first = std::min(first, e.run.threads[t.thread].start_ns);
			last = std::max(last, e.run.threads[t.thread].end_ns);
		}
	// Slow requests' time before and after the recording: the reason only if it is most of what is
	// unattributed.
	uint64_t before_ns = 0, after_ns = 0;
	for (const SlowRequest &r : e.blame.slow) {
		before_ns += std::min(first, r.end_ns()) - std::min(first, r.due_ns);
		after_ns += std::max(last, r.end_ns()) - std::max(last, r.due_ns);
	}
	const uint64_t half_ns = e.blame.RowOf(Cause::Unknown).total_ns() / 2;
	if (last && after_ns > half_ns)
		return ": the server's recording ends at " + common::FormatOffset(last, e.zero_ns) +
		       ", before the load does.";
	if (last && before_ns > half_ns)
		return ": the server's recording begins at " + common::FormatOffset(first, e.zero_ns) +
		       ", after the load does. Start forktail record first.";
	if (const ServerIdle &idle = e.blame.idle; idle.unread_ns + idle.read_ns)
		return ": the serving thread was idle for " + common::FormatDuration(idle.unread_ns) +
		       " before it had read the requests, and for " + common::FormatDuration(idle.read_ns) +
		       " after that" + WaitingFor(e, ", perhaps waiting for ") + ".";
	return WaitingFor(e, ": the serving thread was idle, perhaps waiting for ") + ".";
}

} // namespace

Answer AnswerOf(const Explanation &e)
{
	const Blame &b = e.blame;
	const std::string one = b.from_iterations ? "event-loop iteration" : "request";
	const std::string of_time = " of the slow " + one + "s' time";
	if (std::string text = OutageText(e); !text.empty())
		return {text, "outage"};
	if (std::string text = OverloadText(e); !text.empty())
		return {text, "overload"};
	if (b.count == b.errors)
		return {"No request was answered."};
	const Lead &lead = e.lead;
	switch (lead.kind) {
	case Lead::Kind::None:
		return {"Nothing was slow: no " + one + " took " + common::FormatDuration(b.threshold_ns) +
			" or more."};
	case Lead::Kind::Unattributed:
		return {ShareText(e, Cause::Unknown) + of_time + " has no recorded cause (unknown)" +
			    WhyUnattributed(e) + MeanwhileText(e, Cause::Unknown),
			"unattributed",
			{Cause::Unknown}};
	case Lead::Kind::Causes:
		break;
	}
	Answer answer = {"", "cause", lead.causes};
	answer.text = lead.late_first ? LateText(e, of_time) + "." : CausesText(e, of_time) + ".";
	answer.text += WhatIfText(e);
	if (lead.late_first) {
		answer.causes.insert(answer.causes.begin(), Cause::ClientLate);
		answer.text += AdviceOf(e, Cause::ClientLate);
	} else if (lead.late) {
		answer.text += " The load generator itself delayed " + ShareText(e, Cause::ClientLate) +
			       " of this time (client-late).";
	}
	for (Cause cause : lead.causes)
		answer.text += AdviceOf(e, cause);
	if (std::ranges::find(lead.causes, Cause::Held) != lead.causes.end())
		answer.text += MeanwhileText(e, Cause::Held);
	if (std::ranges::find(lead.causes, Cause::Network) != lead.causes.end()) {
		answer.sure = NetworkIsSeen(e);
		answer.text += NetworkAdvice(e);
	}
	return answer;
}

std::string AnswerText(const Explanation &e)
{
	return AnswerOf(e).text;
}

} // namespace forktail::analysis
