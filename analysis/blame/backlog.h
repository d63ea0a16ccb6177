// SPDX-License-Identifier: MIT
// Queues: which requests waited for a connection, and since when a backlog has lasted.
//
// A stall of 60 ms at 20,000 requests/s leaves 1,200 requests behind, and those wait long after the stall is
// over while the server does nothing but work. To blame them on the stall one has to know from when on
// the queue has never been empty: docs/how-it-works/attribution.md, "Backlog".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/column.h"
#include "analysis/run/run.h"
#include "analysis/timeline/timeline.h"

namespace forktail::analysis
{

// Per request: until when its connection was taken, between intended_ns and start_ns, and for how long of the
// time since intended_ns it was free nevertheless: a load generator that stood still left it so, and took it
// for earlier requests then. It is free from when an answer has arrived, where that is known. Both empty when
// no request of the run was late for that.
struct ConnectionWaits {
	Column<uint64_t> until_ns, free_ns;

	bool empty() const { return until_ns.empty(); }
};

// A connection's last request that was sent.
struct LastUse {
	uint64_t start_ns = 0, arrived_ns = 0; // 0: there was none
};

// What each connection carried, as the log is gone through from its beginning.
class ConnectionSlots
{
public:
	// In a closed loop none waits, and there is nothing to keep.
	// `last_of`: per connection, its last request, which may stand in the log behind those that were
	// never sent for it.
	ConnectionSlots(const Run &run, std::vector<LastUse> last_of);
	// Of the window of the log that is in run.requests.
	void Wait(const Run &run, ConnectionWaits *waits);

private:
	// What one place of a connection's pipeline carried, as far back as a request may have been due.
	struct Slot {
		struct Use {
			uint64_t start_ns;
			uint64_t free_ns; // of the slot before it, in all
		};
		std::vector<Use> uses; // from `first` on
		size_t first = 0;
		uint64_t end_ns = 0; // of the last

		uint64_t FreeSince(uint64_t due_ns);
		void Take(uint64_t start_ns, uint64_t until_ns);
	};
	void Grow(const Run &run);

	bool open_loop_;
	std::vector<uint32_t> depth_; // by connection
	std::vector<size_t> first_;   // its slots in slots_
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
	const Timeline *timeline = nullptr;
	const Timeline *behind = nullptr; // where requests went on to; nullptr: nowhere

	// The last instant not after t_ns at which there was no backlog; 0: not known of any.
	uint64_t ClearBefore(uint64_t t_ns) const;
	// The same without a look at the timelines, which may not be there: it may be earlier, but for 0,
	// where it is t_ns.
	uint64_t Since(uint64_t t_ns) const;
};

// Makes one of the requests to a server, or of those that went on from it to one behind, as the log and the
// timelines are gone through.
class BacklogBuilder
{
public:
	// Of the run from from_ns on. `behind` nullptr: they went nowhere else. `most`: buckets it may have.
	BacklogBuilder(const Run &run, uint64_t from_ns, const Timeline *timeline, const Timeline *behind,
		       uint64_t most);
	// `until_ns`: for a connection; `free_ns`: of the time up to that the connection was free.
	void Add(uint64_t due_ns, uint64_t arrived_ns, uint64_t usual_ns, uint64_t until_ns,
		 uint64_t free_ns);
	// That nothing was to do, as far as timelines tell now.
	void AddIdle();
	Backlog Finish();

private:
	size_t Bucket(uint64_t t_ns) const;
	void TakeIdle(const Timeline &one, const Timeline *other);

	Backlog b_;
	std::vector<int32_t> waits_; // how many more wait from the bucket on
};

} // namespace forktail::analysis
