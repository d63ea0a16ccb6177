// SPDX-License-Identifier: MIT
// What is usual: per operation, the median latency of answered requests that met no stall worth a span. If
// none did, the median of all of them: better a backlog overlooked than one invented. Of a long log every
// n-th request is taken, which leaves the median of a million of them.
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
	// Per op; 0: no request of it was answered. Once.
	std::vector<uint64_t> Latencies();

private:
	std::vector<std::vector<uint64_t>> calm_{256}, all_{256}; // by op
};

} // namespace forktail::analysis
