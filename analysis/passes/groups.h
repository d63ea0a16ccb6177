// SPDX-License-Identifier: MIT
// Requests by client and by command: how many, how long they took, and what the slow ones met. One pass over
// the log counts them. Memory is bounded, whatever clients do: beyond a number of groups the rest is one
// group, and a group's latencies are a histogram.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/blame/blame.h"
#include "analysis/run/log.h"
#include "analysis/run/run.h"
#include "common/statistics/histogram.h"

namespace forktail::analysis
{

struct RequestGroup {
	std::string name;
	uint32_t client = 0; // 1 + index into Run::request_clients; 0: a command, or not one client
	uint64_t requests = 0, errors = 0;
	Latencies latencies;		   // of answered requests: p50, p99, p99_9 and max
	uint64_t slow = 0;		   // slow requests
	uint64_t slow_ns = 0;		   // their time
	std::vector<HopCause> causes = {}; // of that time, largest first
};

// Counts requests, then slow requests, and makes the groups.
class RequestGroups
{
public:
	// `most`: groups of clients, further ones are together in "other".
	explicit RequestGroups(size_t most = 1000) : most_(most) {}
	// Counts all requests of the log. By client only if the log names clients.
	void Count(const Run &run, Log *log);
	void AddSlow(const Run &run, const SlowRequest &r, const Part *parts);
	// By p99.9, largest first.
	std::vector<RequestGroup> Clients(const Run &run) const;
	std::vector<RequestGroup> Commands(const Run &run) const;

private:
	struct Group {
		uint64_t requests = 0, errors = 0, slow = 0, slow_ns = 0;
		common::Histogram latencies;
		std::array<uint64_t, kCauses> by_cause = {};
	};
	Group *ClientOf(const Run &run, uint32_t connection);
	static void AddSlowTo(const SlowRequest &r, const Part *parts, Group *group);
	static RequestGroup Result(const Group &group);

	size_t most_;
	std::vector<std::unique_ptr<Group>> clients_; // by Connection::client; [0]: unknown
	std::unique_ptr<Group> other_;
	size_t count_ = 0; // of `clients_`
	std::array<std::unique_ptr<Group>, 256> commands_;
};

} // namespace forktail::analysis
