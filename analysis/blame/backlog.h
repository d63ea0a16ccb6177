// SPDX-License-Identifier: MIT
// Queues: which requests waited for a connection, and since when a backlog has lasted.
//
// A stall of 60 ms at 20,000 requests/s leaves 1,200 requests behind, and those wait long after the stall is
// over while the server does nothing but work. To blame them on the stall one has to know from when on
// the queue has never been empty: docs/attribution.md, "Backlog".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/column.h"
#include "analysis/run/run.h"
#include "analysis/timeline/timeline.h"

namespace forktail
{

// Per request: until when its connection was taken, between intended_ns and start_ns, and for how long of the
// time since intended_ns it was free nevertheless: a load generator that stood still left it so, and took it
// for earlier requests then. It is free from when an answer has arrived, where that is known. Both empty when
// no request of the run was late for that.
struct ConnectionWaits {
	Column<uint64_t> until_ns, free_ns;

	bool empty() const { return until_ns.empty(); }
};
ConnectionWaits WaitsForConnection(const Run &run);

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
};

// Whose backlog.
struct BacklogOf {
	const Timeline &timeline;
	uint32_t server; // a request's entry in served_by or, if that is empty, its connection's server
	const Column<uint16_t> &served_by;
	// Where they went on to; the backlog is empty when both are idle.
	const Timeline *back = nullptr;
	// Of those only that went to this server behind it (1 + index into run.behind); 0: of all.
	uint32_t behind = 0;
};

// `usual_ns` is per op (0: not known).
Backlog BuildBacklog(const Run &run, const BacklogOf &of, const std::vector<uint64_t> &usual_ns,
		     const ConnectionWaits &taken);

} // namespace forktail
