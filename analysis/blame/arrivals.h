// SPDX-License-Identifier: MIT
// What is known if the load generator asked its kernel when answers arrived (`--arrival-times`): latency as
// the client's host saw it, the time that answers waited in the socket buffer, and the time in each direction
// of the network.
#pragma once

#include <cstdint>

#include "blame.h"
#include "context.h"

namespace forktail::analysis
{

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
