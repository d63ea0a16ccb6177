// SPDX-License-Identifier: MIT
// Blame: what each request's latency was spent on, and what every percentile would be without a cause.
//
// A request's parts sum to its latency exactly. A part is direct (the cause ran while the request waited)
// or queued (the request waited behind others that the cause had held up). docs/how-it-works/attribution.md holds the
// rules, docs/reference/causes.md the causes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/run/log.h"
#include "analysis/run/run.h"
#include "analysis/timeline/causes.h"
#include "analysis/timeline/client.h"
#include "analysis/timeline/timeline.h"

namespace forktail::analysis
{

// Exact values of all requests, in ns. A percentile p is the smallest latency that at least p % of the
// requests do not exceed.
struct Latencies {
	uint64_t p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, p99_99 = 0, max = 0;
	double mean = 0;
};
// The exact ones by name, lowest first.
struct NamedLatency {
	const char *name;
	double percentile; // of "max" 100
	uint64_t Latencies::*value;
};
constexpr NamedLatency kLatencies[] = {
    {"p50", 50, &Latencies::p50},	{"p90", 90, &Latencies::p90},	       {"p99", 99, &Latencies::p99},
    {"p99.9", 99.9, &Latencies::p99_9}, {"p99.99", 99.99, &Latencies::p99_99}, {"max", 100, &Latencies::max}};
// What-if knows this percentile and higher ones.
constexpr double kLowestWithout = 99;
// As JSON of any kind.
template <class Json> Json LatenciesJson(const Latencies &l)
{
	Json latencies;
	for (const NamedLatency &n : kLatencies)
		latencies[n.name] = l.*n.value;
	return latencies;
}

// A thread on the way of requests: an index into the timelines that BlameRun got, of several of one thread
// the first. What passed in none (late, on its way, not recorded) is at no hop.
constexpr uint16_t kNoHop = UINT16_MAX;

struct Part {
	Cause cause = Cause::Unknown;
	uint16_t hop = kNoHop;
	uint64_t direct_ns = 0;
	uint64_t queued_ns = 0;
	uint64_t total_ns() const { return direct_ns + queued_ns; }
};

// A request and its answer on their way, as far as a server's idleness tells them apart: until it found
// something to do, it had not got the request; since it last found nothing, it had sent the answer.
struct OnTheWay {
	uint64_t request_ns = 0, answer_ns = 0;
};

// A request at or over the threshold. Its parts are Blame::parts[first_part, +part_count), largest first.
// Without a request log it is an event-loop iteration, and `index` counts Run::iterations.
struct SlowRequest {
	uint64_t due_ns; // an iteration's start
	uint64_t latency_ns;
	uint64_t since_ns; // its causes lie in [since_ns, end_ns()): earlier than due_ns if it queued
	uint64_t index;	   // number in the request log, or in Run::iterations
	uint32_t episode;  // index into episodes, set by FindEpisodes
	uint32_t first_part;
	uint16_t part_count;
	uint8_t op;
	uint8_t status;		 // enum ft_status
	uint16_t hop = kNoHop;	 // that served it, or that it came to first; kNoHop: not known
	bool arrived = false;	 // it is known when its answer arrived; then
	uint64_t unread_ns = 0;	 // how long that lay unread at the client
	OnTheWay way = {};	 // of servers that were asked directly
	uint64_t sent_ns = 0;	 // not of an iteration, as the rest
	uint32_t connection = 0; // index into Run::connections
	uint64_t clocks_ns = 0;	 // of its unknown time, what two hosts' clocks are not known well enough for
	uint8_t behind = 0;	 // the server behind the proxy: 1 + index into Run::behind; 0: not known
	uint64_t end_ns() const { return due_ns + latency_ns; }
};

// One cause over all slow requests; the what-if percentiles are over all requests of the run.
struct CauseRow {
	Cause cause;
	uint64_t requests = 0; // slow ones it has a part in
	uint64_t direct_ns = 0;
	uint64_t queued_ns = 0;
	double share = 0;  // of all slow requests' time, 0..1
	Latencies without; // from kLowestWithout on
	uint64_t total_ns() const { return direct_ns + queued_ns; }
};

// What passed at one hop, over all slow requests.
struct HopCause {
	Cause cause;
	uint64_t time_ns;
};
struct HopRow {
	uint16_t hop;
	bool proxy = false;    // servers lie behind it
	uint64_t served = 0;   // requests of the run that came by
	uint64_t requests = 0; // slow ones it has a part in
	uint64_t time_ns = 0;
	double share = 0;		   // of all slow requests' time, 0..1
	std::vector<HopCause> causes = {}; // largest first
};

// Who serves requests, where that is not one thread for each server. Hops are as above.
struct Serving {
	struct Stretch {
		uint64_t from_ns, to_ns;
		uint16_t hop;
	};
	std::vector<uint16_t> more; // serving threads besides the first of each server
	// By hop: to which thread of its process it hands requests on; kNoHop, or beyond the end: it serves
	// them itself.
	std::vector<uint16_t> hands_to;
	// Per Run::connections, in order; time in no stretch is unknown. Empty: each is its server's first
	// thread's.
	std::vector<std::vector<Stretch>> connections;

	uint16_t HandsTo(uint16_t hop) const { return hop < hands_to.size() ? hands_to[hop] : kNoHop; }
};

// Where "slow" begins: a duration or a percentile of the run.
struct Threshold {
	uint64_t ns = 0;       // used if not 0
	double percentile = 0; // used if not 0
};

// Of all answered requests whose answer's arrival is known, as it is with `--arrival-times`.
struct Arrivals {
	uint64_t known = 0;
	Latencies latencies; // from when they were due to the arrival
	uint64_t unread_ns = 0, longest_unread_ns = 0;
};

struct Blame {
	bool from_iterations = false; // no request log: event-loop iterations stand in for requests
	uint64_t count = 0;	      // requests (or iterations) in all
	uint64_t errors = 0;	      // of them with an error status
	std::array<uint64_t, 256> by_status = {};
	Latencies latencies;
	uint64_t threshold_ns = 0;
	// Slow requests by start: the slowest BlameLimits::kept, where there are more.
	std::vector<SlowRequest> slow;
	std::vector<Part> parts;
	uint64_t slow_count = 0;	// of all slow requests
	uint64_t kept_from_ns = 0;	// those that took at least that long are in `slow`; 0: all slow ones
	uint64_t clocks_ns = 0;		// sum of their clocks_ns
	uint64_t slow_ns = 0;		// sum of all slow requests' latencies
	std::vector<CauseRow> causes;	// by time, largest first, unknown last; only those with time
	std::vector<HopRow> hops;	// those that requests came by, by time
	std::vector<uint64_t> usual_ns; // per op: median latency of requests that met no stall; 0: none
	Arrivals arrivals;
	// On connections of which it is not known which of several threads served them then.
	uint64_t unserved_requests = 0, unserved_connections = 0;
	// That took so long that what they met at first was not there.
	uint64_t cut_requests = 0;

	// A cause's row; an empty one if no slow request met it.
	const CauseRow &RowOf(Cause cause) const
	{
		static const CauseRow none = {};
		for (const CauseRow &row : causes)
			if (row.cause == cause)
				return row;
		return none;
	}
};

// What memory is spent on: it bounds what is told apart, not what is summed up.
struct BlameLimits {
	size_t kept = 200'000;		    // slow requests that are kept
	uint64_t backlog_buckets = 1 << 22; // of time, for each server
	// Is told of every slow request, kept or not, in the order of the log, with its parts.
	std::function<void(const SlowRequest &, const Part *parts)> tell = {};
};

// Of a run of whose threads' doings only a stretch is there: makes that those in [from_ns, to_ns) are, and
// what is known of load threads' too. True: the timelines have been made again, in place.
using Cover = std::function<bool(uint64_t from_ns, uint64_t to_ns)>;
// Calls see(from_ns, to_ns) for each of some stretches that are all of the run, one after the other, each
// being there.
using EachStretch = std::function<void(const std::function<void(uint64_t from_ns, uint64_t to_ns)> &see)>;
struct Stretches {
	Cover cover = [](uint64_t, uint64_t) { return false; };
	EachStretch each = [](const auto &see) { see(0, UINT64_MAX); };
	// Until when a stretch that begins at an instant can go on with the memory there is.
	std::function<uint64_t(uint64_t from_ns)> reach = [](uint64_t) { return UINT64_MAX; };
};

// Requests that are of no interest but for what others queued for: due in [from_ns, to_ns), before all in the
// log.
struct Earlier {
	Log *log = nullptr; // in place of whose windows it puts its own; null: there are none
	uint64_t from_ns = 0, to_ns = 0;
};

} // namespace forktail::analysis
