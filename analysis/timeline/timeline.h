// SPDX-License-Identifier: MIT
// A thread's timeline: the owner of each instant, as one sorted array of pieces without overlaps, and without
// gaps inside the thread's account. docs/how-it-works/attribution.md describes how it follows from spans and
// tallies, and where it is an estimate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "causes.h"

namespace forktail::analysis
{

constexpr uint32_t kNoSpan = UINT32_MAX;
constexpr uint32_t kNoMix = UINT32_MAX;

// [start_ns, next piece's start). A piece has one cause, or is the mix of short intervals between spans in a
// tally window. In a mix `cause` is ServerBusy (own code, usually the largest part).
struct Piece {
	uint64_t start_ns;
	uint32_t span; // index into Run::spans of the span that owns it, or kNoSpan
	uint32_t mix;  // index into Timeline::mixes, or kNoMix
	Cause cause;
};

// The composition of the time between spans in one tally window: entries are (cause, ns) and sum to total_ns.
struct MixPart {
	Cause cause;
	uint64_t ns;
};
struct Mix {
	uint32_t first_part;
	uint32_t part_count;
	uint64_t total_ns;
};

// [start_ns, end_ns) in which the thread waited for another one. The causes of the pieces there are what the
// other one did.
struct Foreign {
	uint64_t start_ns, end_ns;
	uint32_t thread; // index into Run::threads
	Cause cause;
};

// Nanoseconds by cause, including Idle.
using CauseTimes = std::array<uint64_t, kTimelineCauses>;

struct Timeline {
	uint32_t thread = UINT32_MAX; // index into Run::threads
	std::vector<Piece> pieces;    // the last one starts at the end and is a sentinel
	std::vector<Mix> mixes;
	std::vector<MixPart> mix_parts;
	// Instants known to be idle: the server's queue was empty then. Sorted. A wait inside an event-loop
	// iteration is none: requests may be in the queue.
	std::vector<uint64_t> idle_ns;
	std::vector<TimeSpan> waits_inside; // such waits, in order
	std::vector<Foreign> foreign;	    // by start, not overlapping
	// Sums of whole pieces before every kStride-th piece (SumUp), and a coarse index of pieces by time.
	std::vector<CauseTimes> sums;
	std::vector<uint32_t> index;
	uint32_t index_shift = 0;

	bool empty() const { return pieces.size() < 2; }
	uint64_t start_ns() const { return empty() ? 0 : pieces.front().start_ns; }
	uint64_t end_ns() const { return empty() ? 0 : pieces.back().start_ns; }
};

// Builds the timeline of run.threads[thread], as far as its records are loaded (Run::loaded_from_ns). Where
// events of that thread may have been dropped, time without a span is Unknown.
Timeline BuildTimeline(const Run &run, uint32_t thread);

// Calls `see` with each foreign interval that overlaps [from_ns, to_ns), and its length there.
template <typename See> void EachForeign(const Timeline &t, uint64_t from_ns, uint64_t to_ns, See see)
{
	// They do not overlap, so ends are in the same order as starts.
	auto f = std::partition_point(t.foreign.begin(), t.foreign.end(),
				      [&](const Foreign &x) { return x.end_ns <= from_ns; });
	for (; f != t.foreign.end() && f->start_ns < to_ns; ++f)
		see(*f, std::min(f->end_ns, to_ns) - std::max(f->start_ns, from_ns));
}

// Rebuilds the index of a timeline after its pieces changed.
void IndexTimeline(Timeline *timeline);
// Builds the sums that make AddTimes over many pieces fast. The results are the same without them.
void SumUp(Timeline *timeline);

// The piece that contains t_ns, for start_ns() <= t_ns < end_ns().
uint32_t PieceAt(const Timeline &timeline, uint64_t t_ns);

// Whether t_ns is in a wait inside an event-loop iteration, which is no idle time.
bool WaitsInside(const Timeline &timeline, uint64_t t_ns);

// The recorded event-loop iteration of a thread that contains t_ns; nullptr: none, or it may be several.
const ft_span *IterationAt(const Run &run, const Thread &thread, uint64_t t_ns);
// The part of that iteration in which it does not take further requests: from where the thread runs, after a
// wait for the CPU or a stop at its begin. Empty if t_ns is not in it.
TimeSpan ClosedIteration(const Run &run, const Timeline &timeline, uint64_t t_ns);

// Adds the times of [from_ns, to_ns) to *times; exactly to_ns - from_ns is added. Time outside the timeline
// is Unknown.
void AddTimes(const Timeline &timeline, uint64_t from_ns, uint64_t to_ns, CauseTimes *times);

// Adds `ns` of a piece, in the proportions of its mix.
void AddPiece(const Timeline &timeline, const Piece &piece, uint64_t ns, CauseTimes *times);

// A thread's account, from its own times and tallies (not from the timeline): accounted time against elapsed
// time.
struct Account {
	uint32_t thread = 0; // index into Run::threads
	uint64_t wall_ns = 0;
	uint64_t accounted_ns = 0;
	CauseTimes by_cause = {};
};
Account AccountOf(const Run &run, uint32_t thread);

// The accounts of all threads, summed over a run's stretches in order.
class Accounts
{
public:
	// Adds what began in [from_ns, to_ns), which must be loaded.
	void Add(const Run &run, uint64_t from_ns, uint64_t to_ns);
	// Per Run::threads, after everything was added.
	std::vector<Account> Result(const Run &run) const;
	// Whether a thread has an event loop, the number of its known iterations, and their median length.
	bool HasEventLoop(size_t thread) const { return threads_[thread].loop; }
	uint64_t Turns(size_t thread) const { return threads_[thread].iterations; }
	uint64_t UsualTurnNs(size_t thread) const;
	const Counted &CountedOf(size_t thread) const { return threads_[thread].counted; }
	// Whether the lock of any wait is known.
	bool WaitsForLocks() const { return waits_for_locks_; }

private:
	struct OfThread {
		CauseTimes by_cause = {};
		bool loop = false;
		uint64_t iterations = 0;
		Counted counted = {};
		// Every `stride`-th iteration is stored, so that their number is bounded.
		uint64_t stride = 1;
		std::vector<uint64_t> iteration_ns = {};
	};
	void AddIteration(const ft_span &iteration, OfThread *to);
	std::vector<OfThread> threads_;
	bool waits_for_locks_ = false;
};

// The serving thread of a server's connections; docs/how-it-works/attribution.md has the rule. `server` is an
// index into run.servers, or -1 if no request log names one. Returns an index into run.threads, or -1 and a
// sentence in *why.
int ServingThread(const Run &run, const Accounts &accounts, int server, std::string *why);
// For a run that is loaded completely.
int ServingThread(const Run &run, int server, std::string *why);
// The same for a server behind a proxy.
int InstanceThread(const Run &run, const Accounts &accounts, const Behind &instance, std::string *why);

// Processes that may wait for an answer of another server, before they answer. Without servers that answer by
// themselves: a Redis with a primary does not wait for it.
std::set<uint32_t> ClientsOfServers(const Run &run);
// Whether a process is a server that waits for no other one before it answers: Redis, memcached.
bool AnswersByItself(const Run &run, uint32_t process);
// By such process: where its outgoing connections lead to, except to other targets.
std::map<uint32_t, std::vector<std::string>> UnrecordedPeers(const Run &run);

} // namespace forktail::analysis
