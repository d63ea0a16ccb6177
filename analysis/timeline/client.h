// SPDX-License-Identifier: MIT
// The load generator's threads, if they were recorded with the server (not with `forktail record
// --no-client`): the thread that sent and read a request, and when a server was idle because that thread
// stalled.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/run.h"
#include "timeline.h"

namespace forktail::analysis
{

struct Clients {
	std::vector<Timeline> timelines;    // of recorded load threads
	std::vector<int32_t> of_connection; // per Run::connections: index into timelines; -1: not recorded

	// Index of a connection's load thread, or -1.
	int32_t Of(uint32_t connection) const
	{
		return connection < of_connection.size() ? of_connection[connection] : -1;
	}
};

// Finds them by the thread ids that the load generator logs for each test. `first_due_ns`: per
// Run::connections, the due time of its first request; UINT64_MAX, or beyond the end: it had none.
Clients FindClients(const Run &run, const std::vector<uint64_t> &first_due_ns);

// Intervals in which the server's thread was idle and a load thread stalled (not idle itself, not
// interrupted). An answer that waited then waited for the load generator. Both stalls and idle times are
// spans, so nothing here is an estimate.
struct StalledIdle {
	std::vector<uint64_t> start_ns, end_ns; // in order
	std::vector<uint64_t> before_ns;	// their sum before each

	// The part of [from_ns, to_ns).
	uint64_t Between(uint64_t from_ns, uint64_t to_ns) const;
};
StalledIdle FindStalledIdle(const Timeline &server, const Timeline &client);

} // namespace forktail::analysis
