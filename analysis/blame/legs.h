// SPDX-License-Identifier: MIT
// A request's time between two hosts, leg by leg: sent late, on its way there, at the server, on the way
// back, unread. The ends are told by one host's clock, the middle by another's, so that how long each way
// took is known to what the two clocks may be off, and what that leaves open is said to be unknown.
#pragma once

#include <cstdint>

#include "blame.h"

namespace forktail::analysis
{

// How far the times of a connection's requests may be off against what the server's thread did; 0: both are
// of one clock.
uint64_t ClocksBound(const Run &run, uint32_t connection, uint32_t server_thread);

// They sum to the request's latency.
struct Legs {
	uint64_t late_ns = 0;	 // until it was sent, or the load generator stood still
	uint64_t there_ns = 0;	 // on its way to the server, at least
	uint64_t server_ns = 0;	 // what happened there, whatever it was
	uint64_t back_ns = 0;	 // the answer on its way, at least
	uint64_t unread_ns = 0;	 // the answer at the client's host, if that is known; else it is in back_ns
	uint64_t unknown_ns = 0; // one or the other way, or not known at all
};
// Of a request of Blame::slow.
Legs LegsOf(const Blame &blame, const SlowRequest &r);

} // namespace forktail::analysis
