// SPDX-License-Identifier: MIT
// Composes the first line of an answer. analysis/passes.h decides which causes it speaks of.
#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "common/format.h"
#include "sentences.h"

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

// Whether what TCP did explains most of the time on the network.
bool TcpExplains(const Explanation &e)
{
	return e.tcp.explained_ns() && e.tcp.explained_ns() >= e.tcp.network_ns / 2;
}

// "12 segments were retransmitted, the first after 203 ms (420 ms of 700 ms on the network)".
std::string TcpClause(const Explanation &e)
{
	constexpr double nearly_all = 0.9;
	const TcpFacts &f = e.tcp;
	std::string text = TcpText(f, e.run);
	text[0] = static_cast<char>(std::toupper(text[0]));
	if (static_cast<double>(f.explained_ns()) < nearly_all * static_cast<double>(f.network_ns))
		text += " (" + common::FormatDuration(f.explained_ns()) + " of the requests' " +
			common::FormatDuration(f.network_ns) + " on the network)";
	return text;
}

// What is known of time in which the server was idle and the load generator waited.
std::string NetworkClause(const Explanation &e)
{
	if (TcpExplains(e))
		return TcpClause(e);
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
	if (TcpExplains(e))
		return "";
	const std::string tcp = TcpText(e.tcp, e.run);
	const std::string known = tcp.empty() ? "" : " TCP: " + tcp + ".";
	if (NetworkIsSeen(e))
		return known;
	return known + MeanwhileText(e, Cause::Network) +
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

std::string PeerMeanwhileOf(const Explanation &e, Cause cause)
{
	const auto found = e.culprits.find(cause);
	return found == e.culprits.end() || found->second.meanwhile.empty() ? ""
									    : " " + found->second.meanwhile;
}

std::string ShareText(const Explanation &e, Cause cause)
{
	return common::FormatPercent(e.blame.RowOf(cause).share);
}

// Clauses begin with a capital letter, unless they begin with a name.
std::string Continued(std::string clause)
{
	for (const char *word : {"The ", "Requests ", "Replies ", "Hardware ", "Soft "})
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
		if (d.source == FT_DROP_RING && (d.detail == FT_DROP_REQUESTS || d.detail == FT_DROP_TCP))
			continue; // of other requests; of the network
		if (std::ranges::none_of(e.blame.slow, [&](const SlowRequest &r) {
			    return r.since_ns < d.end_ns && r.end_ns() > d.start_ns;
		    }))
			continue; // when nothing was slow
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
	for (uint32_t t : e.hop_threads)
		if (t < e.run.threads.size()) {
			first = std::min(first, e.run.threads[t].start_ns);
			last = std::max(last, e.run.threads[t].end_ns);
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
	const ServerIdle &idle = e.blame.idle;
	if (e.blame.idle_large_ns * 2 > idle.unread_ns + idle.read_ns)
		return ": the serving thread was idle for " + common::FormatDuration(e.blame.idle_large_ns) +
		       " before it had written all of their large replies: the clients or the network took "
		       "them slowly.";
	if (idle.unread_ns + idle.read_ns)
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
			    WhyUnattributed(e) + (e.run.threads.empty() ? LeadingKeyText(e) : "") +
			    MeanwhileText(e, Cause::Unknown),
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
	} else if (lead.late) {
		answer.text += " The load generator itself delayed " + ShareText(e, Cause::ClientLate) +
			       " of this time (client-late).";
	}
	for (Cause cause : lead.causes)
		answer.text += PeerMeanwhileOf(e, cause);
	if (std::ranges::find(lead.causes, Cause::Held) != lead.causes.end())
		answer.text += MeanwhileText(e, Cause::Held);
	if (std::ranges::find(lead.causes, Cause::Network) != lead.causes.end()) {
		answer.sure = NetworkIsSeen(e) || TcpExplains(e);
		answer.text += NetworkAdvice(e);
	}
	return answer;
}

std::string AnswerText(const Explanation &e)
{
	return AnswerOf(e).text;
}

// A word that a shell takes as it is; "" for another one, such as a path with spaces.
static std::string ShellWord(const std::string &word)
{
	constexpr std::string_view others = "/._-:@+=,";
	const bool plain = std::ranges::all_of(word, [&](unsigned char c) {
		return std::isalnum(c) || others.find(static_cast<char>(c)) != others.npos;
	});
	return plain ? word : "";
}

// "forktail try 'config set lazyfree-lazy-user-del yes' --port 6379"; "" if it cannot be tried, or the server
// is of another host.
static std::string TryCommand(const Explanation &e, const RemedyInfo &info)
{
	const std::string set = "CONFIG SET ", unix_socket = "unix:";
	if (info.change != RemedyInfo::Live || e.run.servers.size() != 1 || !OnOneHost(e.run))
		return "";
	const std::string &server = e.run.servers[0];
	const bool is_socket = server.starts_with(unix_socket);
	const std::string address =
	    ShellWord(server.substr(is_socket ? unix_socket.size() : server.rfind(':') + 1));
	std::string setting = std::string(info.command).substr(set.size());
	std::ranges::replace(setting, '\'', '"');
	return address.empty()
		   ? ""
		   : "forktail try 'config set " + setting + "' " + (is_socket ? "--unix " : "--port ") +
			 address + (*info.loses ? " --accept-data-loss" : "");
}

// What to do, why, and what it gains, without the command that measures it.
static std::string RemedySentences(const Explanation &e, const Remedy &remedy)
{
	const RemedyInfo &info = *remedy.info;
	std::string text = info.text;
	text[0] = static_cast<char>(std::tolower(text[0]));
	text = "What to do: " + text + (*info.command ? " (" + std::string(info.command) + ")" : "") +
	       (remedy.seen.empty() ? "" : ", because " + remedy.seen) + ".";
	const NamedLatency &figure = *e.lead.figure;
	if (static_cast<double>(remedy.without_ns) <=
	    (1 - kNoticeable) * static_cast<double>(e.blame.latencies.*figure.value))
		text += std::string(" At best ") + (figure.percentile < 100 ? figure.name : "the maximum") +
			" becomes " + common::FormatDuration(remedy.without_ns) + ".";
	if (*info.loses)
		text += " A crash may then lose " + std::string(info.loses) + ".";
	return text;
}

static constexpr const char *kMeasure = " To measure it on this server:";

std::string RemedyText(const Explanation &e)
{
	const std::vector<Remedy> remedies = RemediesOf(e);
	if (remedies.empty())
		return "";
	const std::string command = TryCommand(e, *remedies[0].info);
	return RemedySentences(e, remedies[0]) + (command.empty() ? "" : kMeasure + (" " + command) + ".");
}

// The command has a separate line, because one that is wrapped cannot be pasted.
std::string RemedyLines(const Explanation &e, size_t indent, size_t columns)
{
	const std::vector<Remedy> remedies = RemediesOf(e);
	if (remedies.empty())
		return "";
	const std::string command = TryCommand(e, *remedies[0].info);
	return Wrap(RemedySentences(e, remedies[0]) + (command.empty() ? "" : kMeasure), 0, indent, columns) +
	       (command.empty() ? "" : std::string(indent, ' ') + command + "\n");
}

// Sentences about requests, slow requests, drops, cost and notes.

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
	case FT_BLOCK_TCP_EVENT:
	case FT_BLOCK_TCP_STATE:
		return "records of what TCP did";
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
		if (d.detail == FT_DROP_TCP)
			return "events of TCP (ring full)";
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

std::string LeadingSnapshotText(const Explanation &e)
{
	if (e.snapshots.all.empty() || (!e.lead.Names(Cause::Fork) && !e.lead.Names(Cause::CowCopy)))
		return "";
	const auto most = std::ranges::max_element(e.snapshots.all, {}, &Snapshot::slowed);
	if (!most->slowed)
		return "";
	const size_t others = e.snapshots.all.size() - 1;
	return SnapshotText(e.run, e.snapshots, *most, e.zero_ns) + "." +
	       (others ? " " + common::Plural(others, "more snapshot", "more snapshots") + ": --snapshots."
		       : "");
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
				std::to_string(OwnId(e.run, t.tid)) + ")" +
				(place.empty() ? "" : " of " + place) + ": " +
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
	std::string text = "Recording cost: BPF programs ";
	if (runs && c.bpf_known && wall > 0)
		text += "took " + common::FormatDuration(c.bpf_ns) + " (" +
			common::FormatPercent(static_cast<double>(c.bpf_ns) / wall) + " of one CPU" +
			(c.bpf_ns_is_estimate ? ", estimated" : "") + "), " + common::FormatCount(runs) +
			" runs of " + common::FormatDuration(c.bpf_ns / runs) + " on average";
	else if (c.windows)
		text += "ran " + common::Plural(runs, "time", "times") +
			"; the recording is too short to measure their time (" +
			common::Plural(*c.windows, "window", "windows") + "). Record for 2 s or more";
	else
		text += "took an unknown time (the recording is too short)";
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
		texts.push_back("Not recorded: " + m.Text() + ".");
	return texts;
}

} // namespace forktail::analysis
