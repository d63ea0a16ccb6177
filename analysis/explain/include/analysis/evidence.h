// SPDX-License-Identifier: MIT
// The evidence for an episode: who held the CPU, the lock or the disk, what the thread's own code did, and
// the sentence that says it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

// Classifies the kernel's work for a thread by the system call of a sample: "kernel/send".
//
// A sample without callers shows only libc's `write` of the server. The system call and the kind of its file
// still show that the server was sending a reply. If the sample has a kernel stack, the stack decides.

// The kernel part of a sample.
struct KernelSide {
	bool in_kernel = false;
	std::string call; // the system call's name; "" for none, or unknown
	uint8_t file = 0; // enum ft_sample_file
};

struct KernelWork {
	std::string activity; // "" if unknown
	std::string where;    // the kernel function that identifies it, or the call: "tcp_sendmsg", "write()"
};

// `stack`: the kernel's functions, innermost first.
KernelWork KernelWorkOf(const KernelSide &side, const std::vector<std::string> &stack);

// Classifies a sampled stack as an activity of the server, by function names and by the kernel's work for the
// server.
//
// Activity names are an interface, like cause names: docs/reference/causes.md lists them. They rely on
// function names of Redis, Valkey, KeyDB and memcached that have been stable for a decade. An unknown
// function becomes "function/NAME".

struct Activity {
	std::string name; // "command/KEYS", "script", "expire", "function/serverCron", "module/libc.so.6"
	std::string
	    where; // the functions that identify it, innermost first: "keysCommand < call < processCommand"
	bool in_lua = false;	     // Lua code ran, not a command that the script called
	bool in_kernel = false;	     // the kernel ran on the server's behalf
	bool in_transaction = false; // EXEC ran, or a command that the transaction had queued
};

Activity ActivityOf(const Stack &stack, const KernelSide &side = {});

// The activities of all CPU samples of a run.
// Of the samples that were loaded when they were made.
struct Activities {
	uint64_t loaded_from_ns = 0, loaded_to_ns = 0; // as of the run then
	std::vector<Activity> kinds;		       // distinct ones
	std::vector<uint32_t> of_sample;	       // the kind of each of the run's cpu_samples
	const Activity &Of(size_t sample) const;
	bool AreOf(const Run &run) const; // false: other samples are loaded now
};

Activities ActivitiesOf(const Run &run);

// A thread's on-CPU time by activity: counts the CPU samples of an interval.
//
// The share of samples, weighted with their periods, estimates the share of time. With k samples the relative
// error of an activity's time is approximately 1 / sqrt(k).

struct ActivityTime {
	std::string name;
	uint64_t samples = 0;
	uint64_t lua_samples = 0;    // of them in Lua code
	uint64_t kernel_samples = 0; // of them in the kernel
	double share = 0;	     // of the weight of all samples, 0..1
	uint64_t time_ns = 0;	     // that share of the on-CPU time
	std::string stack;	     // the most frequent one, innermost function first
	double error() const;	     // of time_ns, relative: samples^-1/2
};

struct OwnCode {
	uint64_t samples = 0;
	std::vector<ActivityTime> activities; // longest first
	uint64_t transaction_samples = 0;     // of the samples in EXEC
};

// Counts samples of own code. Samples inside a frame (a fork, a fault) belong to the frame. Several threads
// may be added.
class OwnCodeCount
{
public:
	OwnCodeCount(const Run &run, const Activities &activities) : run_(run), activities_(activities) {}
	void Add(const Thread &thread, uint64_t from_ns, uint64_t to_ns);
	// Adds the counts of another object.
	void Add(const OwnCodeCount &other);
	// `own_ns`: the on-CPU time of what was added.
	OwnCode Result(uint64_t own_ns) const;

private:
	struct ActivityCount {
		uint64_t samples = 0, lua_samples = 0, kernel_samples = 0, transaction_samples = 0;
		double weight = 0;
		std::map<std::string, uint64_t> stacks;
	};
	const Run &run_;
	const Activities &activities_;
	std::map<std::string, ActivityCount> counts_;
};

// Episodes: slow requests that overlap in time form one episode. Each episode has its causes ranked and
// evidence: sentences made from the spans, block requests and server reports in its time.

struct EpisodeCause {
	Cause cause;
	uint16_t hop;		// where most of it was spent, or kNoHop
	uint64_t time_ns;	// over the episode's requests
	double share;		// of the episode's requests' time, 0..1
	uint64_t thread_ns = 0; // of the serving thread in [since_ns, end_ns]; 0 for causes outside it
};

struct EpisodeHop {
	uint16_t hop;
	uint64_t time_ns; // over the episode's requests
	double share;	  // of the episode's requests' time, 0..1
};

// Sums over an episode's requests whose replies have known arrival times.
struct EpisodeAnswers {
	uint64_t known = 0;
	uint64_t unread_ns = 0; // at the client, summed over them
	uint64_t longest_unread_ns = 0;
	OnTheWay way = {}; // summed over them
};

// What TCP did with the connections of slow requests while these waited, as a recorded host's kernel saw it.
// The times are parts of the requests' time on the network; the rest of it is unexplained.
struct TcpFacts {
	uint64_t network_ns = 0;			     // of the requests
	uint64_t retransmission_ns = 0;			     // until a segment was sent again
	uint64_t client_window_ns = 0, server_window_ns = 0; // this end's receive window was full
	uint64_t nagle_ns = 0; // unsent data waited for the acknowledgment of earlier data
	uint64_t retransmitted = 0, connections = 0; // segments, and on how many connections
	uint64_t first_after_ns = 0;		     // after the request was sent
	uint64_t resets_by_server = 0, resets_by_client = 0;
	uint64_t only_counted = 0; // events of any connection at this time, beyond the limit of events
	uint64_t nagle_seen = 0;   // by looks, of which there are at most ten per second
	uint64_t nagle_longest_ns = 0;
	std::map<std::string, uint64_t>
	    dropped;			       // packets that a recorded host dropped, by the kernel's reason
	std::map<uint32_t, uint64_t> nagle_at; // of nagle_seen, by the server's port; 0: at the client

	uint64_t explained_ns() const
	{
		return retransmission_ns + client_window_ns + server_window_ns + nagle_ns;
	}
	bool any() const
	{
		return explained_ns() || retransmitted || resets_by_server || resets_by_client ||
		       nagle_seen || !dropped.empty();
	}
	void Add(const TcpFacts &other);
};

struct Episode {
	uint64_t start_ns = 0; // CLOCK_MONOTONIC: the first request was due
	uint64_t end_ns = 0;
	uint64_t since_ns = 0; // its causes are in [since_ns, end_ns]
	uint64_t requests = 0;
	uint64_t worst_ns = 0;
	uint64_t time_ns = 0;		  // sum of its requests' latencies
	std::vector<EpisodeCause> causes; // largest first
	std::vector<EpisodeHop> hops;	  // largest first
	EpisodeAnswers answers;
	TcpFacts tcp;
	std::vector<std::string> evidence;
	std::vector<Cause> evidence_of; // the causes of the first of these sentences, in the same order
	OwnCode own_code;		// of the thread that served its worst request, in [since_ns, end_ns]
};

// The event, code or process behind a cause, over all episodes with evidence (scene.h).
struct Culprit {
	std::string clause;    // "fork() for BGREWRITEAOF took 43.7 ms"; "" if unknown
	std::string meanwhile; // what another recorded process did then, a sentence; "" for most
	// What has most of the time, for remedies: the purpose of forks ("BGSAVE"), a file, a CPU holder
	// ("snapshot child"), or an activity ("command/KEYS"); "" if nothing has.
	std::string subject = "";
	bool behind_fsync = false; // of waits for the file
};
using Culprits = std::map<Cause, Culprit>;

// Requests with a smaller gap belong to one episode.
constexpr uint64_t kEpisodeGapNs = 1'000'000;

// Groups blame->slow, sets their `episode`, and returns the episodes by start.
std::vector<Episode> FindEpisodes(Blame *blame);

// Fills `evidence` and `own_code` of the `episodes_limit` episodes with the most time: at most `limit`
// sentences each, the largest cause first. `timelines` and `clients`: as for BlameRun; `activities`: per CPU
// sample; `cover`: loads an interval of the run into all of these, if only a stretch is in memory. `culprits`
// has the causes whose culprit is wanted, and is filled; it may be null.
void FindEvidence(const Run &run, const std::vector<Timeline> &timelines, const Blame &blame,
		  const Activities &activities, size_t limit, size_t episodes_limit,
		  std::vector<Episode> *episodes, const Clients &clients = {}, const Cover &cover = {},
		  Culprits *culprits = nullptr);

// Whether a connection holds back a small segment until earlier ones are acknowledged: Nagle's algorithm, or
// a program that corked it. The kernel reports no TCP_NODELAY, but with it such a segment is sent at once.
bool WaitsForDelayedAck(const ft_tcp_state &s);
// Fills `tcp` of the episodes of blame.slow. Returns the sum.
TcpFacts FindTcp(const Run &run, const Blame &blame, std::vector<Episode> *episodes);
// "12 segments were retransmitted, the first after 203 ms; this host dropped 11 packets (QDISC_DROP)"; "" if
// nothing is known.
std::string TcpText(const TcpFacts &facts, const Run &run);

// Indices of the episodes with the most time, at most `limit`, largest first.
std::vector<uint32_t> WorstEpisodes(const std::vector<Episode> &episodes, size_t limit);

} // namespace forktail::analysis
