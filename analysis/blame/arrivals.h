// SPDX-License-Identifier: MIT
// What is known where the load generator asked its kernel when answers arrived (`--arrival-times`): latency
// as the client's host saw it, how long answers lay unread, and which way the network was in.
#pragma once

#include <cstdint>

#include "blame.h"

namespace forktail::analysis
{

// Between a request's sending and its answer's arrival; at least, where these are told by a clock that may be
// off by so much.
OnTheWay FindOnTheWay(const Timeline &server, uint64_t sent_ns, uint64_t arrived_ns, uint64_t bound_ns = 0);

// Sets what the log has of the request at requests[i] beside its times: connection, arrival.
void NoteRequest(const Requests &requests, size_t i, SlowRequest *r);

} // namespace forktail::analysis
