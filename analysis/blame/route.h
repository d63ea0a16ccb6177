// SPDX-License-Identifier: MIT
// The way of requests through a proxy to a server behind it, and at which of the two their time went.
//
// Neither process is asked which request it works on. But a proxy that sits idle has passed on all it was
// given: what came before has left it, and what is there after it began later. So the idleness of the proxy
// cuts a request's time in three: on its way through the proxy, at the instance, and its answer's way back.
// In the middle the instance's thread tells, before and after the proxy's; each where the other one is idle.
// docs/how-it-works/attribution.md, "Through a proxy".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/timeline/timeline.h"

namespace forktail::analysis
{

// When a thread is known to have been without work.
struct IdleTimes {
	struct Mark {
		uint64_t at_ns;	   // of begins: not before it; of ends: not after it
		uint64_t known_ns; // of begins: by then it had begun; of ends: then it had not ended yet
	};
	std::vector<Mark> begins, ends; // by at_ns; known_ns in the same order
	// How many of each lie before every multiple of 2^shift ns from start_ns on: where to look.
	uint64_t start_ns = 0;
	uint32_t shift = 0;
	std::vector<uint32_t> begins_before, ends_before;

	// The first instant by which it surely became idle, not before t_ns; UINT64_MAX: never.
	uint64_t FirstAfter(uint64_t t_ns) const;
	// The last instant at which it surely still was idle, up to t_ns; 0: never.
	uint64_t LastBefore(uint64_t t_ns) const;
	// Fills what was last named, for marks in [from_ns, to_ns].
	void Index(uint64_t from_ns, uint64_t to_ns);
};
IdleTimes IdleTimesOf(const Timeline &timeline);

// Nanoseconds at each of the two, and those in which both were idle. No Idle and no Network in the first two.
struct RouteTimes {
	CauseTimes front = {}, back = {};
	uint64_t between_ns = 0;
};

// Who is looked at first; the other one where that is idle.
enum class First : uint8_t { Front, Back };

// What whole pieces of the one that is looked at first were spent on: most of what a walk comes by, so that
// it needs not divide them again.
struct WholePieces {
	uint32_t from = 0;	     // of the first's pieces
	std::vector<uint32_t> begin; // of each one's times, and where the last one's end
	std::vector<uint32_t> ns;
	// A cause at the first; + kTimelineCauses: at the second; then, between the two.
	std::vector<uint8_t> place;
	static_assert(2 * kTimelineCauses <= UINT8_MAX);

	bool Has(uint32_t piece) const { return piece >= from && piece - from + size_t{1} < begin.size(); }
};

struct Route {
	const Timeline *front = nullptr, *back = nullptr;
	IdleTimes front_idle;
	// Sums from start_ns on at every multiple of 2^shift ns after it, by who is first: long requests by
	// the thousand are added up in a moment.
	uint64_t start_ns = 0;
	uint32_t shift = 0;
	std::vector<RouteTimes> sums[2];
	WholePieces whole[2];
};

// Where a run's routes have their sums: at every multiple of 2^shift ns from the run's start on. The same for
// a stretch of the run as for all of it, so that what a request was spent on doesn't depend on the stretch.
struct RouteGrid {
	uint64_t start_ns;
	uint32_t shift;
};
// Of a run in [start_ns, end_ns]; `max_sums`: how many a route may keep.
RouteGrid GridOf(uint64_t start_ns, uint64_t end_ns, uint64_t max_sums = 4096);

// For requests in [from_ns, to_ns]. The timelines must outlive it.
Route BuildRoute(const Timeline &front, const Timeline &back, const RouteGrid &grid, uint64_t from_ns,
		 uint64_t to_ns);

// Where the proxy's idleness cuts a request's time: until passed_ns on its way through, from returned_ns on
// its answer's way back. In the wrong order: not cut.
struct Cuts {
	uint64_t passed_ns, returned_ns;
};
// Of one that was sent at sent_ns and answered at answered_ns.
Cuts CutsOf(const Route &route, uint64_t sent_ns, uint64_t answered_ns);

// Add what [from_ns, to_ns) was spent on; exactly to_ns - from_ns is added. They return what of it lay
// between the two. The second one is for a request with these cuts.
uint64_t AddRouteTimes(const Route &route, First first, uint64_t from_ns, uint64_t to_ns, CauseTimes *front,
		       CauseTimes *back);
uint64_t AddRequestTimes(const Route &route, const Cuts &cuts, uint64_t from_ns, uint64_t to_ns,
			 CauseTimes *front, CauseTimes *back);

} // namespace forktail::analysis
