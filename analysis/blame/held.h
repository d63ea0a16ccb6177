// SPDX-License-Identifier: MIT
// When a server held requests that it had read: paused clients, blocking commands, missing replicas.
//
// A server that holds requests is idle, as one is whose requests are on the network. Its own words
// distinguish the two: INFO counts the clients that it blocks. At an instant at which it counted at least
// half as many more than usual as requests were waiting, these requests were held.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// Commands that a server answers when something happens, not when it has read them: "BLPOP", "WAIT".
bool IsBlockingCommand(const std::string &name);

class HeldTimes
{
public:
	struct Interval {
		uint64_t from_ns, to_ns;
	};
	// The part of [from, to) in which requests were held.
	uint64_t Between(uint64_t from_ns, uint64_t to_ns) const;

private:
	friend class HeldBuilder;
	std::vector<Interval> intervals_; // by time, not overlapping
};

class HeldBuilder
{
public:
	// The instants are those of the load generator's INFO, of a run with one server.
	explicit HeldBuilder(const Run &run);
	// A request that waited for its answer in [from, to). In the order of the log.
	void Add(uint64_t from_ns, uint64_t to_ns);
	HeldTimes Finish() const;

private:
	struct Instant {
		uint64_t t_ns;
		double blocked; // clients more than usual
		uint64_t waiting = 0;
		uint64_t from_ns = UINT64_MAX, to_ns = 0; // of the requests that wait
	};
	std::vector<Instant> instants_; // with blocked clients
};

} // namespace forktail::analysis
