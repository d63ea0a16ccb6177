// SPDX-License-Identifier: MIT
// A real Redis Cluster for a test: `primaries` nodes with a replica each, on free ports of 127.0.0.1. The
// constructor waits until every node reports a good state and every replica is synchronized. The destructor
// removes all of it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/servers/server.h"

namespace forktail::test
{

class Cluster
{
public:
	// timeout_ms: cluster-node-timeout, how long a node is silent before it counts as dead. It is long,
	// so that a busy machine causes no failover by itself.
	explicit Cluster(int primaries = 3, int timeout_ms = 15000);

	// Primaries first, then their replicas in the same order.
	Redis &node(size_t i) { return *nodes_.at(i); }
	size_t size() const { return nodes_.size(); }
	int primaries() const { return static_cast<int>(size() / 2); }
	std::string id(size_t i) { return node(i).command({"CLUSTER", "MYID"}); }
	std::string address(size_t i) { return "127.0.0.1:" + std::to_string(node(i).port()); }

	// Moves slots first..last from one primary to another as redis-cli does: migrating and importing,
	// keys, then the new owner is announced to all primaries.
	void move(int first, int last, size_t from, size_t to);

private:
	std::shared_ptr<Started> started_;
	std::vector<std::unique_ptr<Redis>> nodes_;
};

} // namespace forktail::test
