// SPDX-License-Identifier: MIT
// A request's time between two hosts, leg by leg: sent late, to the server, at the server, back, unread. One
// host's clock has the ends, another's the middle. So each direction is known to within the uncertainty of
// the two clocks, and the rest is unknown.
#pragma once

#include <cstdint>

#include "blame.h"

namespace forktail::analysis
{

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

} // namespace forktail::analysis
