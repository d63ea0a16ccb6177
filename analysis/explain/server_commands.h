// SPDX-License-Identifier: MIT
// What a Redis or Valkey server counted of each command while the load ran, beside the requests of the log.
// The load generator's observer notes the server's counters at the begin and at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/passes/count.h"
#include "analysis/run/part.h"
#include "analysis/run/run.h"

namespace forktail::analysis
{

struct ServerCommand {
	std::string name;			      // "get", "config|set"
	uint64_t calls = 0, rejected = 0, failed = 0; // failed ones are among the calls
	uint64_t time_ns = 0;			      // in the command's function
	// Upper bounds of percentiles of a call's time (LATENCY HISTOGRAM); 0: unknown.
	uint64_t p50_ns = 0, p99_ns = 0;
	// The log's requests with this command; nothing if the log has no such operation.
	std::optional<OperationCount> logged;

	uint64_t MeanNs() const { return calls ? time_ns / calls : 0; }
	// How many more the server counted than the log has.
	int64_t Difference() const { return static_cast<int64_t>(calls + rejected - logged->requests); }
};

struct ServerCommands {
	uint64_t ns = 0;		     // between the two readings of the counters
	std::vector<ServerCommand> commands; // that were counted in that time, by their time, largest first
};

// From the first to the last reading of the counters of the same process of a server; empty without them.
TimeSpan CommandCountsSpan(const Run &run);

// `by_op`: the requests answered in that time. Nothing without two readings.
std::optional<ServerCommands> ServerCommandsOf(const Run &run, const OperationCounts &by_op);

} // namespace forktail::analysis
