// SPDX-License-Identifier: MIT
// The usual latency: per operation, the median of answered requests that met no stall with a span. If all met
// one, it is the median of all of them: a missed backlog is better than an invented one. Of a long log every
// n-th request is taken, so that the median is of about a million.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/blame/context.h"
#include "count.h"

namespace forktail::analysis
{

class Usual
{
public:
	void Add(const Context &context, const SampledRequest &request);
	// Per op; 0: none of its requests was answered. Call it once.
	std::vector<uint64_t> Latencies();

private:
	std::vector<std::vector<uint64_t>> calm_{256}, all_{256}; // by op
};

} // namespace forktail::analysis
