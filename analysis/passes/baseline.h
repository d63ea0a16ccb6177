// SPDX-License-Identifier: MIT
// The usual latency: per operation, the median of answered requests that met no stall with a span. If all met
// one, it is the median of all of them: a missed backlog is better than an invented one. Of a long log every
// n-th request is taken, so that the median is of about a million.
//
// The service time: per operation, the servers' own code during a request that met no other one. Requests
// that did have more, so it is a low percentile. Clients without a log need the server's time too: it is also
// known how much own code a server ran for each request of the log.
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
	// `log_from_ns`: earlier requests do not count for the service time.
	Usual(const Context &context, uint64_t log_from_ns);
	void Add(const Context &context, const SampledRequest &request);
	// Per op; 0: none of its requests was answered. Call it once.
	std::vector<uint64_t> Latencies();
	// Adds the threads' own code in [from_ns, to_ns), a part of the log's time.
	void AddOwnCode(const Context &context, uint64_t from_ns, uint64_t to_ns);
	// Sets the service times of a log with this many answered requests.
	void SetService(uint64_t answered, Context *context);

private:
	uint64_t log_from_ns_;
	std::vector<std::vector<uint64_t>> calm_{256}, all_{256}; // by op
	std::vector<std::vector<uint32_t>> service_{256};	  // likewise, of `calm_`; ns, at most 4 s
	std::vector<double> own_code_ns_;			  // by hop
	std::vector<uint64_t> of_server_, of_way_;		  // sampled requests
};

} // namespace forktail::analysis
