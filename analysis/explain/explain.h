// SPDX-License-Identifier: MIT
// Explains a run: from its path to an Explanation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "analysis/blame/blame.h"
#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "explanation.h"

namespace forktail::analysis
{

struct ExplainOptions {
	Threshold slow; // default: p99, or 1 ms for event-loop iterations
	// The percentile by which causes are ranked for the answer, one of kLatencies. Null: p99.9, or a
	// higher one if that is a usual latency.
	const NamedLatency *ranked_by = nullptr;
	size_t evidence = 4; // sentences per episode
	bool page = false;   // reserve memory for a report page
	bool groups = false; // count requests by command and client, which is always done for a kernel log
	PartAsked part;
	uint64_t memory_bytes = 256 << 20;    // approximate total
	std::function<void(double)> progress; // called with the progress, 0..1
	// As in BlameLimits: called for every slow request.
	std::function<void(const Run &, const SlowRequest &, const Part *parts)> tell = {};
};

// Loads and explains a run. False: *error is one sentence, *status the exit status (2 wrong usage, 3
// unreadable input).
bool ExplainRun(const std::string &path, const ExplainOptions &options, Explanation *out, std::string *error,
		int *status);

// Fills own_codes and own_code of an otherwise complete explanation.
void FindOwnCode(Explanation *explanation);

} // namespace forktail::analysis
