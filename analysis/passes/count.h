// SPDX-License-Identifier: MIT
// The first pass over a request log: what must be known about all its requests before any is blamed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/blame/backlog.h"
#include "analysis/blame/outages.h"
#include "analysis/run/log.h"
#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "load_curve.h"
#include "peaks.h"
#include "percentile.h"

namespace forktail::analysis
{

// One request of several, for the usual latency.
struct SampledRequest {
	uint64_t intended_ns, start_ns, arrived_ns, latency_ns;
	uint32_t connection;
	uint8_t op, behind;
};

// An operation's requests that a server answered in a period.
struct OperationCount {
	uint64_t requests = 0;
	// From the server's read to its answer, of those whose read the server's kernel saw.
	uint64_t served = 0, service_ns = 0;

	void Add(const OperationCount &other)
	{
		requests += other.requests;
		served += other.served;
		service_ns += other.service_ns;
	}
};
using OperationCounts = std::array<OperationCount, 256>; // by index into Run::ops

struct LogFacts {
	uint64_t count = 0;
	std::array<uint64_t, 256> by_status = {};
	uint64_t first_due_ns = UINT64_MAX, last_due_ns = 0, last_end_ns = 0;
	// Per Run::connections: the due time of its first request; UINT64_MAX: none.
	std::vector<uint64_t> first_due_of;
	std::vector<LastUse> last_use_of; // likewise, its last request in the order of the log
	LogHistogram latencies;		  // of answered requests
	unsigned __int128 latencies_ns = 0;
	// Requests through a proxy to an unknown server behind it, and whether that server is known for any.
	uint64_t behind_unknown = 0;
	bool behind = false;
	uint64_t joined = 0;	    // requests that a kernel log has too
	OperationCounts by_op = {}; // answered in the period that was given
	// Answers with a known arrival: the time up to it, and the time that they then waited unread.
	LogHistogram arrivals;
	unsigned __int128 arrivals_ns = 0;
	uint64_t unread_ns = 0, longest_unread_ns = 0;
	Peaks peaks;			    // of answered requests
	LoadCurve curve;		    // of all requests
	std::vector<Outage> outages;	    // by the ends of servers' processes, if they were looked for
	std::vector<SampledRequest> sample; // of answered requests, in order

	uint64_t answered() const { return latencies.count; }
};

// `period`: of `by_op`.
LogFacts CountRequests(const Run &run, Log *log, const TimeSpan &period = {0, 0});
// Adds the usual latencies and the first due times of connections from earlier requests.
void AddEarlier(LogFacts earlier, LogFacts *facts);

} // namespace forktail::analysis
