// SPDX-License-Identifier: MIT
// Queues: which requests waited for a connection, and since when a backlog has lasted.
//
// A stall of 60 ms at 20,000 requests/s leaves 1,200 requests behind. They wait long after the stall is over,
// while the server only works. To blame them on the stall, the analysis must know since when the queue has
// not been empty: docs/how-it-works/attribution.md, "Backlog".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/column.h"
#include "analysis/run/run.h"
#include "analysis/timeline/timeline.h"

namespace forktail::analysis
{

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
	// free in that time.
	void Add(uint64_t due_ns, uint64_t arrived_ns, uint64_t usual_ns, uint64_t until_ns,
		 uint64_t free_ns);
	// Adds the times at which the current timelines show no work.
	void AddIdle();
	Backlog Finish();

private:
	size_t Bucket(uint64_t t_ns) const;
	void TakeIdle(const Timeline &one, const Timeline *other);

	Backlog b_;
	std::vector<int32_t> waits_; // change in the number of waiting requests at each bucket
};

} // namespace forktail::analysis
