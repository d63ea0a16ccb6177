// SPDX-License-Identifier: MIT
// The path of requests through a proxy to a server behind it, and which of the two their time belongs to.
//
// Neither process says which request it works on. But an idle proxy has passed on all it was given: earlier
// requests have left it, and later ones have not begun. So the proxy's idle times cut a request's time in
// three: through the proxy, at the instance, and the answer's way back. In the middle the instance's thread
// decides first, before and after it the proxy's; the other one decides where the first is idle.
// docs/how-it-works/attribution.md, "Through a proxy".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/timeline/timeline.h"

namespace forktail::analysis
{

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

} // namespace forktail::analysis
