// SPDX-License-Identifier: MIT
// Explains a run.
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
	Threshold slow;	     // neither set: p99, or 1 ms when iterations stand in for requests
	size_t evidence = 4; // sentences per episode
	bool page = false;   // a page will be made of it, which takes memory too
	PartAsked part;
	uint64_t memory_bytes = 256 << 20;    // about what all of it may take
	std::function<void(double)> progress; // is called with how far it is, 0..1
	// As in BlameLimits: what else is to see every slow request.
	std::function<void(const Run &, const SlowRequest &, const Part *parts)> tell = {};
};

// Loads and explains. False: *error is one sentence, *status the exit status (2 usage, 3 the input can't).
bool ExplainRun(const std::string &path, const ExplainOptions &options, Explanation *out, std::string *error,
		int *status);

// Fills own_codes and own_code of an explanation that has everything else.
void FindOwnCode(Explanation *explanation);

} // namespace forktail::analysis
