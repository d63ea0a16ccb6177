// SPDX-License-Identifier: MIT
// Composes the first line of an answer.
#include "answer.h"

#include <algorithm>

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

std::string WhatIfText(const CauseRow &row, const Latencies &now)
{
	const std::string without = std::string(" Without ") + WithoutWhat(row.cause);
	if (row.without.p99_9 < now.p99_9)
		return without + " p99.9 would be " + common::FormatDuration(row.without.p99_9) +
		       " instead of " + common::FormatDuration(now.p99_9) + ".";
	if (row.without.max < now.max)
		return without + " the maximum would be " + common::FormatDuration(row.without.max) +
		       " instead of " + common::FormatDuration(now.max) + ".";
	return "";
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

// Why time has no recorded cause, as far as it is known.
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
		       common::FormatOffset(to_ns, e.zero_ns);
	if (e.blame.unserved_requests)
		return ": the serving thread of " +
		       common::Plural(e.blame.unserved_requests, "request", "requests") + " is not known";
	if (e.run.threads.empty())
		return ": no server was recorded";
	if (const ServerIdle &idle = e.blame.idle; idle.unread_ns + idle.read_ns)
		return ": the serving thread was idle for " + common::FormatDuration(idle.unread_ns) +
		       " before it had read the requests, and for " + common::FormatDuration(idle.read_ns) +
		       " after that" + WaitingFor(e, ", perhaps waiting for ");
	return WaitingFor(e, ": the serving thread was idle, perhaps waiting for ");
}

} // namespace

std::string AnswerText(const Explanation &e)
{
	const Blame &b = e.blame;
	const std::string one = b.from_iterations ? "event-loop iteration" : "request";
	const std::string slow = " of the slow " + one + "s' time";
	if (b.count == b.errors)
		return "No request was answered.";
	if (b.slow.empty() || b.causes.empty())
		return "Nothing was slow: no " + one + " took " + common::FormatDuration(b.threshold_ns) +
		       " or more.";
	// In a kernel log unattributed time may be a wait for another server: then no smaller cause explains
	// the requests.
	const CauseRow &unknown = b.RowOf(Cause::Unknown);
	const CauseRow &first =
	    (SeenInKernel(e.run) || !e.unrecorded_peers.empty()) && unknown.share > b.causes[0].share
		? unknown
		: b.causes[0];
	const std::string share = common::FormatPercent(first.share);
	if (first.cause == Cause::Unknown)
		return share + slow + " has no recorded cause (unknown)" + WhyUnattributed(e) + ".";
	const std::string name = std::string(" (") + CauseName(first.cause) + ").";
	if (first.cause == Cause::Network)
		return "Requests or replies were outside the server's host for " + share + slow + name +
		       WhatIfText(first, b.latencies);
	if (e.culprit.clause.empty())
		return share + slow + " is " + CauseName(first.cause) + ": " + InfoOf(first.cause).meaning +
		       "." + WhatIfText(first, b.latencies);
	return e.culprit.clause + ": " + share + slow + name + WhatIfText(first, b.latencies) +
	       (e.culprit.advice.empty() ? "" : " ") + e.culprit.advice;
}

} // namespace forktail::analysis
