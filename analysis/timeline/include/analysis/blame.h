// SPDX-License-Identifier: MIT
// Blame: what each request's latency was spent on, and what every percentile would be without a cause.
//
// A request's parts sum to its latency exactly. A part is direct (the cause ran while the request waited) or
// queued (the request waited behind others that the cause had delayed). docs/how-it-works/attribution.md has
// the rules, docs/reference/causes.md the causes.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "analysis/timeline.h"

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
	uint64_t index;	   // number in the request log, or among the iterations
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
	uint64_t idle_large_ns = 0;	// of idle.read_ns: their answers were large
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

// Queues: which requests waited for a connection, and since when a backlog has lasted.
//
// A stall of 60 ms at 20,000 requests/s leaves 1,200 requests behind. They wait long after the stall is over,
// while the server only works. To blame them on the stall, the analysis must know since when the queue has
// not been empty: docs/how-it-works/attribution.md, "Backlog".

// Per request: until when its connection was busy, between intended_ns and start_ns, and how long the
// connection was free in the time since intended_ns. It is free in that time if the load generator stalled
// and then used it for earlier requests. A connection is free when its answer has arrived, if that is known.
// Both columns are empty if no request of the run was late for that reason.
struct ConnectionWaits {
	Column<uint64_t> until_ns, free_ns;
	// How much of the time until then the server held the request that took the connection (HeldRule).
	Column<uint64_t> held_ns;

	bool empty() const { return until_ns.empty(); }
};

// The last request that was sent on a connection.
struct LastUse {
	uint64_t start_ns = 0, arrived_ns = 0; // 0: none
};

// Which requests a server surely holds after it has read them.
struct HeldRule {
	std::vector<bool> blocking; // by Run::ops: the server answers when something happens
	bool reads = false; // all servers answer by themselves, in one thread: what its kernel saw it read
};

// What each connection carried, in one pass over the log from its beginning.
class ConnectionSlots
{
public:
	// In a closed loop no request waits, and nothing is stored. `last_of`: the last request of each
	// connection, which the log may list after requests that were never sent.
	ConnectionSlots(const Run &run, std::vector<LastUse> last_of);
	// For the window of the log in run.requests.
	void Wait(const Run &run, const HeldRule &held, ConnectionWaits *waits);

private:
	// What one pipeline position of a connection carried, as far back as a request may have been due.
	struct Slot {
		struct Use {
			uint64_t start_ns;
			uint64_t free_ns; // free time of the slot before it, in total
		};
		std::vector<Use> uses; // valid from index `first`
		size_t first = 0;
		uint64_t end_ns = 0; // of the last use
		// When the server last held a request of it for long.
		uint64_t held_from_ns = 0, held_to_ns = 0;

		uint64_t FreeSince(uint64_t due_ns);
		void Take(uint64_t start_ns, uint64_t until_ns);
	};
	void Grow(const Run &run);

	bool open_loop_;
	std::vector<uint32_t> depth_; // slots of each connection
	std::vector<size_t> first_;   // index of its first slot in slots_
	std::vector<uint32_t> next_;
	std::vector<Slot> slots_;
	std::vector<LastUse> last_of_;
};

// When one server's queue was known to be empty, or as short as usual.
struct Backlog {
	uint64_t start_ns = 0;
	uint32_t shift = 0;
	std::vector<uint64_t> clear_ns; // per bucket: the last such instant up to the bucket's end; 0: none
	std::vector<uint8_t> waiting;	// per bucket: some request waited for a connection
	std::vector<uint32_t> due;	// per bucket: the number of requests due up to its end
	const Timeline *timeline = nullptr;
	const Timeline *behind = nullptr; // the server behind, to which requests were passed; nullptr: none

	// The last instant up to t_ns at which there was no backlog; 0: none is known.
	uint64_t ClearBefore(uint64_t t_ns) const;
	// The same without the timelines, which may not be in memory: the result may be earlier. 0 becomes
	// t_ns.
	uint64_t Since(uint64_t t_ns) const;
	// How many requests were due in [from_ns, to_ns), as if those of a bucket were evenly spread.
	double Due(uint64_t from_ns, uint64_t to_ns) const;

private:
	double DueUntil(uint64_t t_ns) const;
};

// Builds a Backlog of the requests to a server, or to a server behind it, in one pass over the log and the
// timelines.
class BacklogBuilder
{
public:
	// For the run from from_ns. `behind` nullptr: requests were not passed on. `most`: the maximum number
	// of buckets.
	BacklogBuilder(const Run &run, uint64_t from_ns, const Timeline *timeline, const Timeline *behind,
		       uint64_t most);
	// `until_ns`: until when the request waited for a connection; `free_ns`: how long the connection was
	// free in that time. `times`: the number of such requests.
	void Add(uint64_t due_ns, uint64_t arrived_ns, uint64_t usual_ns, uint64_t until_ns, uint64_t free_ns,
		 uint64_t times = 1);
	// Adds the times at which the current timelines show no work.
	void AddIdle();
	Backlog Finish();

private:
	size_t Bucket(uint64_t t_ns) const;
	void TakeIdle(const Timeline &one, const Timeline *other);

	Backlog b_;
	std::vector<int32_t> waits_; // change in the number of waiting requests at each bucket
};

// When a server held requests that it had read: paused clients, blocking commands, missing replicas.
//
// A server that holds requests is idle, as one is whose requests are on the network. Its own words
// distinguish the two: INFO counts the clients that it blocks. At an instant at which it counted at least
// half as many more than usual as requests were waiting, these requests were held.

// Commands that a server answers when something happens, not when it has read them: "BLPOP", "WAIT".
bool IsBlockingCommand(const std::string &name);

class HeldTimes
{
public:
	struct Interval {
		uint64_t from_ns, to_ns;
	};
	// The part of [from, to) in which requests were held.
	uint64_t Between(uint64_t from_ns, uint64_t to_ns) const;

private:
	friend class HeldBuilder;
	std::vector<Interval> intervals_; // by time, not overlapping
};

class HeldBuilder
{
public:
	// The instants are those of the load generator's INFO, of a run with one server.
	explicit HeldBuilder(const Run &run);
	// So many requests that waited for their answers in [from, to). In the order of the log.
	void Add(uint64_t from_ns, uint64_t to_ns, uint64_t times = 1);
	HeldTimes Finish() const;

private:
	struct Instant {
		uint64_t t_ns;
		double blocked; // clients more than usual
		uint64_t waiting = 0;
		uint64_t from_ns = UINT64_MAX, to_ns = 0; // of the requests that wait
	};
	std::vector<Instant> instants_; // with blocked clients
};

// Outages: times in which keys had no server, as the load generator saw them (a failover, a server that was
// down), or because the recorded process of a server had ended. The time that a request waited in one is
// neither the client's nor the network's.

constexpr int kAnyServer = -1;

// From the last answer before, or the end of the server's process, to the first answer after it
// (CLOCK_MONOTONIC ns), or to the end of the load.
struct Outage {
	uint64_t begin_ns, end_ns;
	int server = kAnyServer; // index into Run::servers
};

// Those that the load generator noted.
std::vector<Outage> OutagesOf(const Run &run);

// How long a request to a server (kAnyServer: it is not known to which) with these times was without one: its
// time in the longest outage that it waited for. A request that ended before the outage did was served by
// another server, unless it failed.
uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed,
		       int server = kAnyServer);

// The path of requests through a proxy to a server behind it, and which of the two their time belongs to.
//
// Neither process says which request it works on. But an idle proxy has passed on all it was given: earlier
// requests have left it, and later ones have not begun. So the proxy's idle times cut a request's time in
// three: through the proxy, at the instance, and the answer's way back. In the middle the instance's thread
// decides first, before and after it the proxy's; the other one decides where the first is idle.
// docs/how-it-works/attribution.md, "Through a proxy".

// When a thread is known to have had no work.
struct IdleTimes {
	struct Mark {
		uint64_t at_ns;	   // a begin: not before it; an end: not after it
		uint64_t known_ns; // a begin: it had begun by then; an end: it had not ended by then
	};
	std::vector<Mark> begins, ends; // by at_ns; known_ns in the same order
	// The number of marks before every multiple of 2^shift ns from start_ns, for lookup.
	uint64_t start_ns = 0;
	uint32_t shift = 0;
	std::vector<uint32_t> begins_before, ends_before;

	// The first instant, not before t_ns, by which it was certainly idle; UINT64_MAX: never.
	uint64_t FirstAfter(uint64_t t_ns) const;
	// The last instant, up to t_ns, at which it was certainly still idle; 0: never.
	uint64_t LastBefore(uint64_t t_ns) const;
	// Fills the three members for lookup, for marks in [from_ns, to_ns].
	void Index(uint64_t from_ns, uint64_t to_ns);
};
IdleTimes IdleTimesOf(const Timeline &timeline);

// Nanoseconds at each of the two, and those in which both were idle. The first two have no Idle and no
// Network.
struct RouteTimes {
	CauseTimes front = {}, back = {};
	uint64_t between_ns = 0;
};

// Which thread is examined first. The other one counts where that is idle.
enum class First : uint8_t { Front, Back };

// The times of whole pieces of the thread that is examined first. A walk uses mostly these, so they are
// divided once.
struct WholePieces {
	uint32_t from = 0;	     // first piece
	std::vector<uint32_t> begin; // start of each piece's times, and the end of the last one's
	std::vector<uint32_t> ns;
	// A cause at the first; + kTimelineCauses: a cause at the second; 2 * kTimelineCauses: between the
	// two.
	std::vector<uint8_t> place;
	static_assert(2 * kTimelineCauses <= UINT8_MAX);

	bool Has(uint32_t piece) const { return piece >= from && piece - from + size_t{1} < begin.size(); }
};

struct Route {
	const Timeline *front = nullptr, *back = nullptr;
	IdleTimes front_idle;
	// Sums from start_ns at every multiple of 2^shift ns after it, by which thread is first. They make
	// thousands of long requests cheap.
	uint64_t start_ns = 0;
	uint32_t shift = 0;
	std::vector<RouteTimes> sums[2];
	WholePieces whole[2];
};

// The positions of the sums of a run's routes: every multiple of 2^shift ns from the run's start. They are
// the same for a stretch as for the whole run, so that a request's times do not depend on the stretch.
struct RouteGrid {
	uint64_t start_ns;
	uint32_t shift;
};
// For a run in [start_ns, end_ns]; `max_sums`: the maximum per route.
RouteGrid GridOf(uint64_t start_ns, uint64_t end_ns, uint64_t max_sums = 4096);

// For requests in [from_ns, to_ns]. The timelines must outlive it.
Route BuildRoute(const Timeline &front, const Timeline &back, const RouteGrid &grid, uint64_t from_ns,
		 uint64_t to_ns);

// How the proxy's idle times cut a request's time: until passed_ns through the proxy, from returned_ns the
// answer's way back. passed_ns >= returned_ns: not cut.
struct Cuts {
	uint64_t passed_ns, returned_ns;
};
// For a request that was sent at sent_ns and answered at answered_ns.
Cuts CutsOf(const Route &route, uint64_t sent_ns, uint64_t answered_ns);

// Add the times of [from_ns, to_ns); exactly to_ns - from_ns is added. They return the part between the two.
// The second function is for a request with these cuts.
uint64_t AddRouteTimes(const Route &route, First first, uint64_t from_ns, uint64_t to_ns, CauseTimes *front,
		       CauseTimes *back);
uint64_t AddRequestTimes(const Route &route, const Cuts &cuts, uint64_t from_ns, uint64_t to_ns,
			 CauseTimes *front, CauseTimes *back);

// What requests are blamed with: servers, paths through a proxy, outages, and usual latencies. It is
// read-only while the requests of a window are processed, so that all workers share it.

constexpr uint32_t kNoRequest = UINT32_MAX;

struct Server {
	const Timeline *timeline;
	Curve curve;
	Backlog backlog;
	uint16_t hop;
	bool awaits = false; // it is a client of other servers
	bool holds = false; // it answers by itself, in one thread: while it is idle it holds what it has read
	double service_ns =
	    0; // its own code per request of the run, including that for clients without a log
};

// Requests to one server that passed them to one behind it.
struct ProxyPath {
	Route route;
	Backlog backlog;
	uint16_t front_hop, back_hop;
};

struct Context {
	const Run &run;
	const Serving &serving;
	const Clients &clients;
	std::vector<Outage> outages;
	HeldTimes held = {};
	HeldRule held_rule = {};
	// Requests begin and end at the server's sockets: no time of theirs is the network's or a client's.
	bool in_kernel = SeenInKernel(run);
	std::vector<const Timeline *> timelines = {}; // by hop
	std::vector<uint16_t> hop_of_thread = {};     // by Run::threads; kNoHop: it has no timeline here
	// One per run.servers, then further serving threads, then one for requests of an unknown server.
	std::vector<Server> servers = {};
	std::vector<uint16_t> server_of_hop = {}; // index into servers; empty: each connection has its server
	std::vector<StalledIdle> stalled_idle = {}; // by server, then load thread
	std::vector<uint64_t> usual_ns = {};
	// Per op: own code of the servers during a request that met no stall and no other request; 0:
	// unknown.
	std::vector<uint64_t> service_ns = {};
	// Where requests may go from a server: by server, then by the server behind it and, last, by the
	// thread to which it passes them. The value is the end of the path; kNoHop: no such path, or it was
	// not recorded. `proxy_paths` has the paths that requests took.
	std::vector<uint16_t> way_ends = {};
	std::vector<std::unique_ptr<ProxyPath>> proxy_paths = {};
	std::vector<double> way_service_ns = {}; // likewise, as Server::service_ns of both ends

	// Per request of the window of the log in run.requests.
	Column<uint16_t> served_by = {}; // index into servers; empty: by the connection's server
	ConnectionWaits taken = {};
	// The request answered before it on its connection; empty without such paths.
	Column<uint32_t> in_front = {};

	// How long the server was idle while the request's load thread was stalled.
	uint64_t ClientStalled(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		int32_t client = clients.Of(run.requests.connection[i]);
		if (client < 0)
			return 0;
		return stalled_idle[ServerIndex(i) * clients.timelines.size() + static_cast<size_t>(client)]
		    .Between(from_ns, to_ns);
	}
	uint16_t HopOfThread(uint32_t thread) const
	{
		return thread < hop_of_thread.size() ? hop_of_thread[thread] : kNoHop;
	}
	size_t ServerOfConnection(uint32_t connection, uint64_t sent_ns) const
	{
		if (server_of_hop.empty()) {
			uint32_t server = run.connections[connection].server;
			return server < servers.size() ? server : 0;
		}
		size_t server = servers.size() - 1;
		if (connection < serving.connections.size())
			for (const Serving::Stretch &s : serving.connections[connection])
				if (s.from_ns <= sent_ns && sent_ns < s.to_ns)
					server = server_of_hop[s.hop];
		return server;
	}
	size_t ServerIndex(size_t i) const
	{
		return served_by.empty()
			   ? ServerOfConnection(run.requests.connection[i], run.requests.sent_ns[i])
			   : served_by[i];
	}
	const Server &ServerOf(size_t i) const { return servers[ServerIndex(i)]; }
	// Entries of `proxy_paths` per server.
	size_t WaysOfServer() const { return run.behind.size() + 1; }
	// The entry in `proxy_paths` of requests to a server that passed them to one behind it, 1 + index
	// into run.behind; 0: unknown.
	size_t WayOf(size_t server, uint32_t behind) const
	{
		return server * WaysOfServer() + (behind ? behind - 1 : run.behind.size());
	}
	size_t WayOf(size_t i) const { return WayOf(ServerIndex(i), run.requests.Behind(i)); }
	const ProxyPath *ProxyPathOf(size_t i) const
	{
		return proxy_paths.empty() ? nullptr : proxy_paths[WayOf(i)].get();
	}
	// The end of the requests from i on, before `end`, whose time is divided in the same way.
	size_t EndOfEqual(size_t i, size_t end) const
	{
		return taken.empty() && in_front.empty() ? run.requests.EndOfEqual(i, end) : i + 1;
	}
	uint64_t WithoutServer(size_t i) const
	{
		const Requests &q = run.requests;
		if (outages.empty())
			return 0;
		// One that was never sent may have no connection.
		const int server = q.status[i] == FT_STATUS_UNSENT
				       ? kAnyServer
				       : static_cast<int>(run.connections[q.connection[i]].server);
		return forktail::analysis::WithoutServer(outages, q.due_ns[i], q.end_ns[i],
							 IsError(q.status[i]), server);
	}
	// The servers' work that fell due in [from_ns, to_ns) with requests like request i.
	double WorkDue(size_t i, const Backlog &backlog, double service_mean_ns, uint64_t from_ns,
		       uint64_t to_ns) const
	{
		return backlog.Due(from_ns, to_ns) *
		       std::max(service_mean_ns, static_cast<double>(service_ns[run.requests.op[i]]));
	}
	uint64_t Until(size_t i) const { return taken.empty() ? run.requests.due_ns[i] : taken.until_ns[i]; }
	// How long the server held requests, as it reports.
	uint64_t Held(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		return ServerOf(i).awaits ? 0 : held.Between(from_ns, to_ns);
	}
	// Likewise, while the request waited for its connection: also the one that took it.
	uint64_t HeldWaiting(size_t i) const
	{
		return std::max(Held(i, run.requests.due_ns[i], Until(i)),
				taken.empty() ? 0 : taken.held_ns[i]);
	}
	bool Blocks(size_t i) const
	{
		return run.requests.op[i] < held_rule.blocking.size() &&
		       held_rule.blocking[run.requests.op[i]];
	}
	// From when on the server surely held a request that its kernel saw in [from, to): `to` if it did
	// not. An answer that may not have fitted into the socket's buffer may have waited there for the
	// client.
	uint64_t ReadAt(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		const Requests &q = run.requests;
		return ServerOf(i).holds && q.AnswerFits(i) && !q.Behind(i) && i < q.read_ns.size() &&
			       q.read_ns[i]
			   ? std::clamp(q.read_ns[i], from_ns, to_ns)
			   : to_ns;
	}
	// How much of the time until then is the load generator's: it was stalled, or the connection was
	// free.
	uint64_t LateWaiting(size_t i) const
	{
		return taken.empty() ? 0
				     : std::max(taken.free_ns[i],
						ClientStalled(i, run.requests.due_ns[i], taken.until_ns[i]));
	}
};

// The output of exact blame: a request's parts, then the request. Each worker has its own sheet, so that none
// waits for another. The passes join the sheets in the order of requests.

struct Sheet {
	std::vector<SlowRequest> requests;
	std::vector<Part> parts;
};

// Adds a part of the current request, if it has any time.
void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet);
// Adds the current request's direct and queued time at one hop.
void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      Sheet *sheet);
// Ends a request whose parts are the sheet's from r->first_part on.
void AddRequest(SlowRequest *r, Sheet *sheet);
// Adds the next request of the log, which equals the last one and shares its parts.
inline void AddEqual(Sheet *sheet)
{
	SlowRequest r = sheet->requests.back();
	r.index++;
	sheet->requests.push_back(r);
}
// The end of the requests of a sheet from i on that were added as equal.
inline size_t EndOfEqual(const std::vector<SlowRequest> &requests, size_t i)
{
	size_t to = i + 1;
	while (to < requests.size() && requests[to].first_part == requests[i].first_part &&
	       requests[to].latency_ns == requests[i].latency_ns && requests[to].status == requests[i].status)
		to++;
	return to;
}

// Time at a thread, divided by responsible thread: while it waited for another one, that one's.

// A request's time at one thread.
struct AtHop {
	uint16_t hop;
	CauseTimes direct = {};
	std::array<uint64_t, kStallCauses> queued = {};
};

// Adds the parts of a request at one thread with this timeline. What it queued for is in [since_ns, due_ns).
void AddPartsAt(const Context &context, const Timeline &timeline, AtHop at, uint64_t since_ns,
		uint64_t due_ns, uint64_t end_ns, Sheet *sheet);

// The time of one request that went through a proxy, hop by hop.

using StallTimes = std::array<uint64_t, static_cast<size_t>(kStallCauses)>;

struct HopTimes {
	std::vector<AtHop> hops; // in the order of the path
	uint64_t between_ns = 0, late_ns = 0, since_ns = 0;

	AtHop &At(uint16_t hop)
	{
		for (AtHop &h : hops)
			if (h.hop == hop)
				return h;
		hops.push_back({hop});
		return hops.back();
	}
	void Add(const CauseTimes &times, uint16_t hop)
	{
		CauseTimes &to = At(hop).direct;
		for (size_t c = 0; c < kCauses; c++)
			to[c] += times[c];
	}
	// Over all hops, including queued time.
	StallTimes Stalls() const
	{
		StallTimes ns = {};
		for (const AtHop &h : hops)
			for (size_t c = 0; c < ns.size(); c++)
				ns[c] += h.direct[c] + h.queued[c];
		return ns;
	}
	uint64_t Sum(Cause cause) const
	{
		uint64_t ns = 0;
		for (const AtHop &h : hops)
			ns += h.direct[static_cast<size_t>(Index(cause))];
		return ns;
	}
};

// A request and its path.
struct RequestPath {
	const Context &context;
	size_t request;
	const ProxyPath *proxy; // null: not through a known proxy
	Cuts cuts;
};
RequestPath PathOfRequest(const Context &context, size_t i);

// Adds [from, to) of its time and returns the part in which all hops were idle.
uint64_t AddOwn(const RequestPath &path, uint64_t from_ns, uint64_t to_ns, HopTimes *s);

// Head-of-line blocking: what requests that waited for their connection waited for. At each instant it is
// what the oldest unanswered request on the connection waited for.
//
// Successive requests of one connection waited for mostly the same requests, up to 200 of them. So the time
// of each of those while it was the oldest is computed once and stored, by connection. From one request to
// the next only the difference is added and subtracted. The sums are whole nanoseconds, equal to those of a
// walk over all of them.

// The maximum number of intervals, each with another oldest request of a connection, that are examined.
constexpr int kHolders = 200;

// Sums of the times of numbered intervals, over a sliding range of them.
class SlidingSums
{
public:
	void Restart(uint64_t begin);
	uint64_t end() const { return end_; }
	// Moves the range to [begin, end). add(number, *times) adds one interval and returns its idle time.
	template <typename Add> void MoveTo(uint64_t begin, uint64_t end, HopTimes *scratch, Add add);
	// Adds two sums to *s. Its hops are in the order of a walk over all intervals from the last one back;
	// for equal numbers those of `a` come first. Returns the idle time.
	static uint64_t AddBoth(const SlidingSums &a, const SlidingSums &b, HopTimes *s);

private:
	struct Part {
		uint32_t ns;
		uint16_t sum; // index into sums_
		uint8_t cause;
		bool idle; // idle at all hops
	};
	struct HopSum {
		uint16_t hop;
		uint16_t place;	   // its position among the hops of its last interval
		uint64_t last = 0; // number of that interval
		CauseTimes direct = {};
	};
	void TakeAway();
	void Keep(const HopTimes &times, uint64_t idle_ns);
	void KeepPart(uint64_t ns, Part part);

	uint64_t begin_ = 0, end_ = 0, idle_ns_ = 0;
	std::vector<HopSum> sums_;
	std::deque<uint32_t> counts_; // number of parts of each interval
	std::deque<Part> parts_;
};

class HeadOfLine
{
public:
	// Adds [from, to), in which request i waited for its connection, and returns the part in which all
	// hops were idle. It is fast for requests in the order of the log.
	uint64_t Add(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *s);

private:
	// A request, and the time in which it was the oldest unanswered one.
	struct Holder {
		uint64_t from_ns, to_ns;
		uint32_t request;
	};
	// Holders of one connection are numbered in their order; their times do not overlap.
	struct Line {
		std::deque<Holder> holders;
		uint64_t first = 0;	    // number of holders.front()
		bool whole = false;	    // no request blocked the connection before that one
		bool disordered = false;    // answers were out of order: nothing is stored
		uint32_t last = kNoRequest; // the last request that was added
		SlidingSums holder_sums;    // sums over holders
		// Times before holders in which the connection was free, by the path of the waiting request.
		std::vector<std::pair<const ProxyPath *, SlidingSums>> free;

		const Holder &At(uint64_t number) const { return holders[number - first]; }
		void Restart();
	};
	// The holders that count for a wait: [low, high), by number.
	struct Count {
		uint64_t low, high;
		bool known; // the line has all of them
	};

	static void Append(const Context &context, uint32_t request, Line *line);
	void TakeIn(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Line *line);
	static Count CountOf(const Line &line, uint64_t from_ns, uint64_t to_ns);
	SlidingSums *FreeOf(const ProxyPath *way, Line *line);

	std::vector<Line> lines_; // by connection
	std::vector<uint32_t> chain_;
	SlidingSums other_;
	HopTimes own_;
};

// The same by a walk over all of them.
uint64_t WalkHeadOfLine(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *s);

// The rules that divide a request's time, written once for all kinds of sums.
// docs/how-it-works/attribution.md has the reasons.
//
// There are three kinds: exact sums by cause, for requests that matter (direct.cc); doubles of a few kinds,
// for all requests (baseline.cc); and exact sums by hop and cause, for requests through a proxy (proxy.cc).
// They define where time is looked up and stored. The rules here define what counts as what.

// Between the last instant without a backlog and a request's due time.
template <typename Number> struct BeforeDue {
	Number stalled, busy;
	double work_ns; // own code for the requests that fell due then
};

// The iteration in which a request became due. It takes requests only at its begin.
template <typename Number> struct InIteration {
	Number busy;	       // its own code in the request's time
	Number stalled_before; // the part of BeforeDue::stalled before it
};

template <typename S>
concept RequestSums = requires(S sums, uint64_t ns, typename S::Number number)
{
	// Time that the rules give to the network and to the load generator.
	requires std::same_as<decltype(sums.network), typename S::Number>;
	requires std::same_as<decltype(sums.late), typename S::Number>;
	// Add the time of [from, to): before the request was sent, and from sent to the arrival of its
	// answer. Servers' idle time is not added but returned.
	requires std::same_as<decltype(sums.AddWaiting(ns, ns)), typename S::Number>;
	requires std::same_as<decltype(sums.AddServed(ns, ns)), typename S::Number>;
	// Time in servers' own code, as added.
	requires std::same_as<decltype(sums.Busy()), typename S::Number>;
	// What servers did between the last instant without a backlog and the request's due time.
	requires std::same_as<decltype(sums.Before(size_t{})), BeforeDue<typename S::Number>>;
	// Of what Before returned: about the event-loop iteration in which the request became due.
	requires std::same_as<decltype(sums.AtDue(size_t{})), InIteration<typename S::Number>>;
	// Moves the first amount to queued time for those stalls; the second is the part that was counted as
	// servers' own code.
	sums.MoveToQueued(number, number);
	// Adds unattributed time, and time in which the server held the request.
	sums.AddUnknown(number);
	sums.AddHeld(number);
	// Does the time of outages go to no-server? Then there are also Unknown(), the unknown part of the
	// time added so far, and SetNoServer(without, unknown), which sets the time of no-server and the rest
	// that stays unknown.
	requires std::same_as<decltype(S::kOutages), const bool>;
};

// The sum of all stalls.
inline uint64_t StallsOf(const CauseTimes &times)
{
	return std::accumulate(times.begin(), times.begin() + kStallCauses, uint64_t{0});
}

// Calls add(from_ns, to_ns) for the parts of request i's time before end_ns in which it waited for servers.
template <typename Add> void ForServersTime(const Context &context, size_t i, uint64_t end_ns, Add add)
{
	const Requests &q = context.run.requests;
	if (!context.in_kernel)
		add(q.due_ns[i], std::min(context.Until(i), end_ns));
	add(q.sent_ns[i], std::min(q.Arrived(i), end_ns));
}

// InIteration at one thread, with exact times.
inline InIteration<uint64_t> InIterationAt(const Context &context, const Timeline &timeline, size_t i,
					   uint64_t clear_ns)
{
	const uint64_t due_ns = context.run.requests.due_ns[i];
	const TimeSpan iteration = ClosedIteration(context.run, timeline, due_ns);
	CauseTimes in = {}, before = {};
	ForServersTime(context, i, iteration.until_ns,
		       [&](uint64_t from_ns, uint64_t to_ns) { AddTimes(timeline, from_ns, to_ns, &in); });
	AddTimes(timeline, clear_ns, iteration.since_ns, &before);
	return {in[Index(Cause::ServerBusy)], StallsOf(before)};
}

// How much of `excess`, own code in request i's time, works off what stalls left behind.
//
// That is work for requests which fell due before, not more than that. Own code of the iteration in which the
// request became due would have run without the stalls inside that iteration, so only earlier ones count
// for it. Not only stalls delay requests: a slow command does it with its own code too. `slow`: own code
// beyond the work of the requests. The backlog is left by both, in proportion to their lengths.
template <RequestSums Sums>
double LeftByStalls(const BeforeDue<typename Sums::Number> &before, size_t i, double excess, Sums *sums)
{
	const InIteration<typename Sums::Number> at = sums->AtDue(i);
	const double stalled = static_cast<double>(before.stalled);
	const double iteration = std::min(static_cast<double>(at.busy), excess), rest = excess - iteration;
	const double earlier =
	    std::min(iteration, before.work_ns * static_cast<double>(at.stalled_before) / stalled);
	const double slow = std::max(0.0, static_cast<double>(before.busy) + earlier + rest - before.work_ns);
	return std::min(earlier + rest, before.work_ns) * stalled / (stalled + slow);
}

// Moves time of request i to queued time. `idle_waiting`: how long servers were idle before it was sent.
template <RequestSums Sums>
void DivideBacklog(const Context &context, size_t i, typename Sums::Number idle_waiting, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	// Backlog is the server's work for others beyond the usual latency, and its idle time while the
	// request waited for a connection that a late answer blocked.
	Number busy = sums->Busy(), usual = static_cast<Number>(context.usual_ns[q.op[i]]);
	Number from_busy = busy > usual ? busy - usual : 0;
	if (!(idle_waiting + from_busy > 0))
		return;
	const BeforeDue<Number> before = sums->Before(i);
	if (!(before.stalled > 0))
		return;
	from_busy = static_cast<Number>(LeftByStalls(before, i, static_cast<double>(from_busy), sums));
	Number moved = std::min(idle_waiting + from_busy, before.stalled);
	from_busy = std::min(moved, from_busy);
	sums->network -= moved - from_busy;
	sums->MoveToQueued(moved, from_busy);
}

// Adds the time of request i from sent to the arrival of its answer. An idle server waits for the load
// generator if that was stalled, else for the network; if it is a client of other servers, and the request's
// is not known, it may wait for that. If it is known when the server's kernel had the request, then not in
// that time: the server waits for the one behind it, which counts as network if it was not recorded, or for
// something that is not known. A server that answers by itself, and had read it, held it.
template <RequestSums Sums> void DivideServed(const Context &context, size_t i, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	auto outside = [&](uint64_t from_ns, uint64_t to_ns) {
		const Number idle = sums->AddServed(from_ns, to_ns);
		Number late = 0;
		if (idle > 0)
			late = std::min(static_cast<Number>(context.ClientStalled(i, from_ns, to_ns)), idle);
		sums->late += late;
		if (context.ServerOf(i).awaits && !q.Behind(i))
			return sums->AddUnknown(idle - late);
		const Number held =
		    context.Blocks(i)
			? idle - late
			: std::min(static_cast<Number>(context.Held(i, from_ns, to_ns)), idle - late);
		if (held > 0)
			sums->AddHeld(held);
		sums->network += idle - late - held;
	};
	const uint64_t sent = q.sent_ns[i], arrived = q.Arrived(i);
	if (!q.Joined(i))
		return outside(sent, arrived);
	const uint64_t at_server = std::min(q.server_arrival_ns[i], arrived),
		       answered = std::min(q.answered_ns[i], arrived);
	outside(sent, at_server);
	const uint64_t read = context.ReadAt(i, at_server, answered);
	const Number network = sums->network, idle = sums->AddServed(at_server, read),
		     idle_after = read < answered ? sums->AddServed(read, answered) : Number{0};
	if (q.Behind(i)) {
		sums->network += idle + idle_after;
	} else {
		sums->AddUnknown(idle + sums->network - network);
		sums->AddHeld(idle_after);
		sums->network = network;
	}
	outside(answered, arrived);
}

// Adds request i to *sums, which is empty.
template <RequestSums Sums> void Divide(const Context &context, size_t i, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	uint64_t due = q.due_ns[i], until = context.Until(i), sent = q.sent_ns[i];
	uint64_t arrived = q.Arrived(i), unread = q.Unread(i);

	// A request that was seen in the server's kernel is there from begin to end. If the serving thread is
	// idle or waits on a socket meanwhile, then for something that is not recorded: the rest of the
	// request, another thread, another server.
	if (context.in_kernel) {
		const uint64_t read = context.ReadAt(i, sent, arrived);
		sums->AddUnknown(sums->AddServed(sent, read) + sums->network);
		if (read < arrived)
			sums->AddHeld(sums->AddServed(read, arrived));
		sums->network = 0;
		return DivideBacklog(context, i, Number{0}, sums);
	}

	// Before it was sent, an idle server waits for the load generator if that was stalled or had a free
	// connection, else for the network. After the answer's arrival the time is the load generator's,
	// whatever the server does.
	Number idle_waiting = sums->AddWaiting(due, until), late_waiting = idle_waiting;
	if (idle_waiting > 0)
		late_waiting = std::min(static_cast<Number>(context.LateWaiting(i)), idle_waiting);
	idle_waiting -= late_waiting;
	if (const Number held = std::min(static_cast<Number>(context.HeldWaiting(i)), idle_waiting);
	    held > 0) {
		sums->AddHeld(held);
		idle_waiting -= held;
	}
	sums->late += late_waiting + static_cast<Number>(unread);
	// A request that was never sent had no connection: that is not the load generator's doing.
	if (q.status[i] == FT_STATUS_UNSENT)
		sums->AddUnknown(static_cast<Number>(sent - until));
	else
		sums->late += static_cast<Number>(sent - until);
	sums->network += idle_waiting;
	DivideServed(context, i, sums);

	// The log names the server that answered in the end. That it was idle during the outage means
	// nothing.
	if constexpr (Sums::kOutages) {
		if (uint64_t without = context.WithoutServer(i)) {
			Number left = static_cast<Number>(without), unknown = sums->Unknown();
			for (Number *part : {&unknown, &sums->late, &sums->network}) {
				Number moved = std::clamp(*part, Number{0}, left);
				*part -= moved;
				left -= moved;
			}
			sums->SetNoServer(static_cast<Number>(without) - left, unknown);
			idle_waiting = 0;
		}
	}

	DivideBacklog(context, i, idle_waiting, sums);
}

// Exact blame of a request sent to a server directly. Those through a proxy are below.

// Adds request i of the current window of the log, with its parts.
void BlameDirectly(const Context &context, size_t i, Sheet *sheet);

// Requests that went through a proxy: the time of each, hop by hop.

// Per worker: the time of one request, and what is reused for the next one.
struct ProxyScratch {
	HopTimes times;
	HopTimes own; // of another request on the path
	HeadOfLine head_of_line;
};

// Finds the paths from servers to servers behind them; servers are known.
void FindWays(const std::vector<Timeline> &timelines, Context *context);
// Stores the paths that requests of the window took.
void NoteWays(Context *context);
// Builds their routes from the current timelines.
void BuildRoutes(Context *context);
// Finds for each request of the window the one ahead of it on its connection.
void FindInFront(Context *context);
// Sums up request i in scratch->times, which is overwritten.
void SumHops(const Context &context, const ProxyPath &path, size_t i, ProxyScratch *scratch);
// The requests to blame: those of threshold_ns or more, and those that would still take floor_ns or more
// without one of the stalls.
struct Matter {
	uint64_t threshold_ns;
	StallTimes floor_ns;

	uint64_t least_ns() const
	{
		return std::min(threshold_ns, *std::min_element(floor_ns.begin(), floor_ns.end()));
	}
};
// Blames the request if it is one of those.
void BlameProxyRequest(const Context &context, const ProxyPath &path, size_t i, const Matter &matter,
		       ProxyScratch *scratch, Sheet *sheet);

// Names of the processes on the path of requests.

struct HopName {
	std::string comm;
	uint32_t pid = 0;
	std::string address; // "" if unknown
	// The thread, if several threads of the process are on the path: "io_thd_1", "mc-worker 4325" (with
	// the id if several have the name), "main thread". Else "".
	std::string thread;
	uint32_t tid = 0;
	std::string host = {}; // only if the run has several hosts
	// "redis-server 127.0.0.1:6380 on redis-a"; without an address "redis-server 4321"; ", io_thd_1"
	// after it.
	std::string text() const;
};

// The role of a hop: "proxy" (there are servers behind it), "instance", or, in a process with several threads
// on the path, "thread".
const char *RoleOf(const HopRow &row, const HopName &name);

// The thread of each hop, as an index into Run::threads; UINT32_MAX: not recorded.
std::vector<uint32_t> HopThreads(const std::vector<Timeline> &timelines);

// `threads` are those of run.servers and run.behind, then further ones. Without a request log
// (`from_iterations`) they are all threads with an event loop.
HopName HopNameOf(const Run &run, const std::vector<uint32_t> &threads, uint16_t hop, bool from_iterations);

// The table of hops: the processes that requests passed, and the time at each.

// The hop of a timeline. Timelines of one thread share a hop.
uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index);
// The hop's row, which is added if missing.
HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows);
// Adds the number of requests of the run that passed a hop.
void CountServed(uint16_t hop, uint64_t requests, Blame *blame);
// The same, by server and by path of the context.
void CountServed(const Context &context, const std::vector<uint64_t> &by_server,
		 const std::vector<uint64_t> &by_way, Blame *blame);

// A request's time between two hosts, leg by leg: sent late, to the server, at the server, back, unread. One
// host's clock has the ends, another's the middle. So each direction is known to within the uncertainty of
// the two clocks, and the rest is unknown.

// The uncertainty between the clock of a connection's requests and that of the server's thread; 0: it is one
// clock.
uint64_t ClocksBound(const Run &run, uint32_t connection, uint32_t server_thread);

// They sum to the request's latency.
struct Legs {
	uint64_t late_ns = 0;	 // until it was sent, or while the load generator was stalled
	uint64_t there_ns = 0;	 // to the server: a lower bound
	uint64_t server_ns = 0;	 // at the server, whatever happened there
	uint64_t back_ns = 0;	 // the answer on the network: a lower bound
	uint64_t unread_ns = 0;	 // the answer unread at the client's host, if known; else it is in back_ns
	uint64_t unknown_ns = 0; // either direction, or unknown
};
// The legs of a request of Blame::slow.
Legs LegsOf(const Blame &blame, const SlowRequest &r);

// What is known if the load generator asked its kernel when answers arrived (`--arrival-times`): latency as
// the client's host saw it, the time that answers waited in the socket buffer, and the time in each direction
// of the network.

// The network time of a request (from sent to server) and of its answer. Each is a lower bound if the clocks
// may differ by bound_ns.
OnTheWay FindOnTheWay(const Timeline &server, uint64_t sent_ns, uint64_t arrived_ns, uint64_t bound_ns = 0);

// The serving thread's idle time in requests[i], if the time at which it read the request is known.
ServerIdle FindServerIdle(const Timeline &server, const Requests &requests, size_t i);

// Sets `way` and `idle` of request i, if it is known when the server's kernel had it. `server`: the thread
// that served it. Time at which its load generator was stalled is on no way. Times of the two may differ by
// bound_ns.
void SplitNetwork(const Context &context, const Timeline &server, size_t i, uint64_t bound_ns,
		  SlowRequest *r);

// Sets the connection and arrival time that the log has of requests[i].
void NoteRequest(const Requests &requests, size_t i, SlowRequest *r);

} // namespace forktail::analysis
