// SPDX-License-Identifier: MIT
// Blame: what each request's latency was spent on, and what every percentile would be without a cause.
//
// A request's parts sum to its latency exactly. A part is direct (the cause ran while the request waited) or
// queued (the request waited behind others that the cause had delayed). docs/how-it-works/attribution.md has
// the rules, docs/reference/causes.md the causes.
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
// Where a percentile of all requests is if those that are known are a random sample of them, with 95 %
// confidence. `high` 0: there are too few to tell.
struct PercentileRange {
	uint64_t low = 0, high = 0;
};
// The exact latencies by name, lowest first.
struct NamedLatency {
	const char *name;
	double percentile; // 100 for "max"
	uint64_t Latencies::*value;
};
constexpr NamedLatency kLatencies[] = {
    {"p50", 50, &Latencies::p50},	{"p90", 90, &Latencies::p90},	       {"p99", 99, &Latencies::p99},
    {"p99.9", 99.9, &Latencies::p99_9}, {"p99.99", 99.99, &Latencies::p99_99}, {"max", 100, &Latencies::max}};
// The lowest percentile that what-if computes.
constexpr double kLowestWithout = 99;
// As JSON of any kind.
template <class Json> Json LatenciesJson(const Latencies &l)
{
	Json latencies;
	for (const NamedLatency &n : kLatencies)
		latencies[n.name] = l.*n.value;
	return latencies;
}

// A thread on the path of requests: an index into the timelines that BlameRun got. For several timelines of
// one thread it is the first. Time outside all threads (late, on the network, not recorded) is at no hop.
constexpr uint16_t kNoHop = UINT16_MAX;

struct Part {
	Cause cause = Cause::Unknown;
	uint16_t hop = kNoHop;
	uint64_t direct_ns = 0;
	uint64_t queued_ns = 0;
	uint64_t total_ns() const { return direct_ns + queued_ns; }
};

// The network time of a request and its answer, as far as the server's idleness distinguishes them. Until the
// server found work, it did not have the request. Since it last found none, it had sent the answer.
struct OnTheWay {
	uint64_t request_ns = 0, answer_ns = 0;
};

// How long the serving thread was idle, or waited on a socket, while the server had a request: before the
// thread had read it, and after that. Only for requests that were seen in the server's kernel.
struct ServerIdle {
	uint64_t unread_ns = 0, read_ns = 0;
};

// Where requests of a load generator's log were that the server's kernel saw too, in time without another
// cause: on their way, unread in the server's socket while its thread was idle, and the answers on their way
// and unread at the client.
struct NetworkSplit {
	uint64_t requests = 0;
	uint64_t to_server_ns = 0, unread_at_server_ns = 0, to_client_ns = 0, unread_at_client_ns = 0;
};

// A request at or above the threshold. Its parts are Blame::parts[first_part, +part_count), largest first.
// Without a request log it is an event-loop iteration, and `index` counts Run::iterations.
struct SlowRequest {
	uint64_t due_ns; // an iteration's start
	uint64_t latency_ns;
	uint64_t since_ns; // its causes are in [since_ns, end_ns()): earlier than due_ns if it queued
	uint64_t index;	   // number in the request log, or in Run::iterations
	uint32_t episode;  // index into episodes, set by FindEpisodes
	uint32_t first_part;
	uint16_t part_count;
	uint8_t op;
	uint8_t status;		// enum ft_status
	uint16_t hop = kNoHop;	// the hop that served it, or that got it first; kNoHop: unknown
	bool joined = false;	// it is known when the server's kernel had it
	bool arrived = false;	// the arrival time of its answer is known; then
	uint64_t unread_ns = 0; // how long the answer waited unread at the client
	OnTheWay way = {};	// only for servers without a proxy
	ServerIdle idle = {};	// in a kernel log or joined with one; there `way` is exact, also with a proxy
	uint64_t sent_ns = 0;	// this and the next: 0 for an iteration
	uint32_t connection = 0; // index into Run::connections
	uint64_t clocks_ns = 0;	 // the part of its unknown time from the uncertainty of two hosts' clocks
	uint8_t behind = 0;	 // the server behind the proxy: 1 + index into Run::behind; 0: unknown
	// Only of a kernel log, as in Requests; 0: unknown.
	uint32_t request_bytes = 0, answer_bytes = 0;
	uint64_t read_ns = 0, written_ns = 0;
	uint64_t end_ns() const { return due_ns + latency_ns; }
	NetworkSplit Split() const
	{
		return joined ? NetworkSplit{1, way.request_ns, idle.unread_ns, way.answer_ns, unread_ns}
			      : NetworkSplit();
	}
};

// One cause over all slow requests; the what-if percentiles are over all requests of the run.
struct CauseRow {
	Cause cause;
	uint64_t requests = 0; // slow requests with a part of this cause
	uint64_t direct_ns = 0;
	uint64_t queued_ns = 0;
	double share = 0;  // of all slow requests' time, 0..1
	Latencies without; // from kLowestWithout up
	uint64_t total_ns() const { return direct_ns + queued_ns; }
};

// Time by cause at one hop, over all slow requests.
struct HopCause {
	Cause cause;
	uint64_t time_ns;
};
struct HopRow {
	uint16_t hop;
	bool proxy = false;    // there are servers behind it
	uint64_t served = 0;   // requests of the run that passed it
	uint64_t requests = 0; // slow requests with a part at it
	uint64_t time_ns = 0;
	double share = 0;		   // of all slow requests' time, 0..1
	std::vector<HopCause> causes = {}; // largest first
};

// Which thread serves which requests, if servers have several threads. Hops are as above.
struct Serving {
	struct Stretch {
		uint64_t from_ns, to_ns;
		uint16_t hop;
	};
	std::vector<uint16_t> more; // serving threads besides the first one of each server
	// By hop: the thread of its process to which it passes requests; kNoHop, or beyond the end: it serves
	// them itself.
	std::vector<uint16_t> hands_to;
	// Per Run::connections, in order. Time outside all stretches is unknown. Empty: the first thread of
	// the server serves each connection.
	std::vector<std::vector<Stretch>> connections;

	uint16_t HandsTo(uint16_t hop) const { return hop < hands_to.size() ? hands_to[hop] : kNoHop; }
};

// Where "slow" begins: a duration or a percentile of the run.
struct Threshold {
	uint64_t ns = 0;       // used if not 0
	double percentile = 0; // used if not 0
};

// All answered requests with a known arrival time (`--arrival-times`).
struct Arrivals {
	uint64_t known = 0;
	Latencies latencies; // from due to the arrival
	uint64_t unread_ns = 0, longest_unread_ns = 0;
};

struct Blame {
	bool from_iterations = false; // no request log: event-loop iterations replace requests
	uint64_t count = 0;	      // requests or iterations in total
	uint64_t errors = 0;	      // with an error status
	std::array<uint64_t, 256> by_status = {};
	Latencies latencies;
	PercentileRange p99_range, p99_9_range;
	uint64_t threshold_ns = 0;
	// Slow requests by start; only the slowest BlameLimits::kept if there are more.
	std::vector<SlowRequest> slow;
	std::vector<Part> parts;
	uint64_t slow_count = 0;	// including those not in `slow`
	uint64_t kept_from_ns = 0;	// `slow` has those that took at least this long; 0: it has all
	uint64_t clocks_ns = 0;		// sum of their clocks_ns
	ServerIdle idle;		// likewise
	NetworkSplit split;		// likewise, of joined requests
	uint64_t joined = 0;		// all requests of the run that a kernel log has too
	uint64_t slow_ns = 0;		// sum of all slow requests' latencies
	std::vector<CauseRow> causes;	// by time, largest first, unknown last; only causes with time
	std::vector<HopRow> hops;	// hops that requests passed, by time
	std::vector<uint64_t> usual_ns; // per op: median latency of requests without a stall; 0: none
	Arrivals arrivals;
	// Requests and connections whose serving thread, of several, is unknown.
	uint64_t unserved_requests = 0, unserved_connections = 0;
	// Requests longer than a stretch: what happened to them at first was no longer in memory.
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

// Limits of memory. They bound what is stored individually, not what is summed.
struct BlameLimits {
	size_t kept = 200'000;		    // slow requests stored
	uint64_t backlog_buckets = 1 << 22; // buckets of time for each server
	// Called for every slow request, stored or not, with its parts, in the order of the log.
	std::function<void(const SlowRequest &, const Part *parts)> tell = {};
};

// For a run with only one stretch of its threads' records in memory: loads the stretch [from_ns, to_ns), of
// load threads too. True: the timelines were rebuilt in place.
using Cover = std::function<bool(uint64_t from_ns, uint64_t to_ns)>;
// Calls see(from_ns, to_ns) for each stretch of the run in order, with that stretch in memory.
using EachStretch = std::function<void(const std::function<void(uint64_t from_ns, uint64_t to_ns)> &see)>;
struct Stretches {
	Cover cover = [](uint64_t, uint64_t) { return false; };
	EachStretch each = [](const auto &see) { see(0, UINT64_MAX); };
	// The end of the longest stretch from an instant that fits in memory.
	std::function<uint64_t(uint64_t from_ns)> reach = [](uint64_t) { return UINT64_MAX; };
};

// Requests before all others in the log, due in [from_ns, to_ns), that matter only because others queued
// behind them.
struct Earlier {
	Log *log = nullptr; // its windows replace the log's; null without one
	uint64_t from_ns = 0, to_ns = 0;
};

} // namespace forktail::analysis
