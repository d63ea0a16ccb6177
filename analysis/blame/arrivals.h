// SPDX-License-Identifier: MIT
// What is known where the load generator asked its kernel when answers arrived (`--arrival-times`): latency
// as the client's host saw it, how long answers lay unread, and which way the network was in.
#pragma once

#include <cstdint>

#include "blame.h"

namespace forktail
{

// Of all answered requests whose arrival is known.
struct Arrivals {
	uint64_t known = 0;
	Latencies latencies; // from when they were due to the arrival
	uint64_t unread_ns = 0, longest_unread_ns = 0;
};
Arrivals FindArrivals(const Run &run);

// Between a request's sending and its answer's arrival.
OnTheWay FindOnTheWay(const Timeline &server, uint64_t sent_ns, uint64_t arrived_ns);

// Sets what is known of the request's arrival.
void NoteArrival(const Requests &requests, SlowRequest *r);

} // namespace forktail
