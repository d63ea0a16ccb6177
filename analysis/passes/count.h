// SPDX-License-Identifier: MIT
// The first pass over a request log: what has to be known of all its requests before any of them is blamed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/blame/backlog.h"
#include "analysis/run/log.h"
#include "analysis/run/run.h"
#include "peaks.h"
#include "percentile.h"

namespace forktail::analysis
{

// One that stands for several, where it is asked what is usual.
struct SampledRequest {
	uint64_t intended_ns, start_ns, arrived_ns, latency_ns;
	uint32_t connection;
	uint8_t op, behind;
};

struct LogFacts {
	uint64_t count = 0;
	std::array<uint64_t, 256> by_status = {};
	uint64_t first_due_ns = UINT64_MAX, last_end_ns = 0;
	// Per Run::connections: when its first request was due; UINT64_MAX: it had none.
	std::vector<uint64_t> first_due_of;
	std::vector<LastUse> last_use_of; // likewise, in the order of the log
	LogHistogram latencies;		  // of those answered
	unsigned __int128 latencies_ns = 0;
	// Through a proxy, to nobody knows which server behind it; and whether of any it is known.
	uint64_t behind_unknown = 0;
	bool behind = false;
	// Of answers whose arrival is known: the time up to it, and how long they then lay unread.
	LogHistogram arrivals;
	unsigned __int128 arrivals_ns = 0;
	uint64_t unread_ns = 0, longest_unread_ns = 0;
	Peaks peaks;			    // of those answered
	std::vector<SampledRequest> sample; // of those answered, in order

	uint64_t answered() const { return latencies.count; }
};

LogFacts CountRequests(const Run &run, Log *log);
// What earlier requests say of what is usual, and of when a connection's first request was due.
void AddEarlier(LogFacts earlier, LogFacts *facts);

} // namespace forktail::analysis
