// SPDX-License-Identifier: MIT
// Exact figures of single operations, and of percentiles that the explanation does not have, from the request
// log. One pass counts, and usually one more finds percentiles. Without such limits the log is not read.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/passes/percentile.h"
#include "analysis/run/log.h"
#include "analysis/run/run.h"

namespace forktail::analysis::gate
{

struct OperationFigures {
	std::array<bool, 256> ops = {}; // indices into Run::ops that match the name
	bool known = false;		// there are requests of such an operation
	uint64_t requests = 0, errors = 0, misses = 0;
	LogHistogram latencies; // of those answered
	uint64_t min_ns = UINT64_MAX;
	double mean_ns = 0, square_sum = 0;	// of distances to the mean: Welford's method
	std::map<double, uint64_t> percentiles; // requested, and filled in

	uint64_t answered() const { return latencies.count; }
	double stddev_ns() const; // of all values, not of a sample
};

// By the operation's name as the user wrote it, ignoring case; "": all operations.
using Operations = std::map<std::string, OperationFigures>;

// Fills in `wanted`. The keys of its `percentiles` are those requested.
void FindOperations(const Run &run, Log *log, Operations *wanted);

} // namespace forktail::analysis::gate
