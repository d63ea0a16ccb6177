// SPDX-License-Identifier: MIT
// Figures of single operations, and percentiles that the explanation has not, exactly, out of the request
// log: one pass for all that is counted, and as a rule one more for percentiles. Only what was asked for is
// gone through at all.
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
	std::array<bool, 256> ops = {}; // indices into Run::ops that it is about
	bool known = false;		// there is such an operation, with requests
	uint64_t requests = 0, errors = 0, misses = 0;
	LogHistogram latencies; // of those answered
	uint64_t min_ns = UINT64_MAX;
	double mean_ns = 0, square_sum = 0;	// of distances to the mean: Welford's way
	std::map<double, uint64_t> percentiles; // asked for, and found

	uint64_t answered() const { return latencies.count; }
	double stddev_ns() const; // of all values, not of a sample
};

// By operation as somebody spells it, case aside; "": all of them.
using Operations = std::map<std::string, OperationFigures>;

// Fills in those that are in `wanted`, each with the keys of `percentiles` that it is asked for.
void FindOperations(const Run &run, Log *log, Operations *wanted);

} // namespace forktail::analysis::gate
