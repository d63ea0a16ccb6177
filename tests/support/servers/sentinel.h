// SPDX-License-Identifier: MIT
// A primary, replicas and three Sentinels that monitor them, for a test. The constructor waits until the
// Sentinels know each other and every replica. The destructor removes all of it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/servers/server.h"

namespace forktail::test
{

class Sentinels
{
public:
	// down_ms: how long the primary has to be silent before a Sentinel counts it as dead. It is long, so
	// that a busy machine causes no failover by itself.
	explicit Sentinels(int replicas = 2, int down_ms = 30000);

	Redis &primary() { return *servers_.front(); } // the first one
	Redis &server(size_t i) { return *servers_.at(i); }
	size_t servers() const { return servers_.size(); }
	Redis &sentinel(size_t i) { return *sentinels_.at(i); }
	std::string address(size_t i) { return "127.0.0.1:" + std::to_string(server(i).port()); }
	std::string sentinel_address(size_t i) { return "127.0.0.1:" + std::to_string(sentinel(i).port()); }
	static constexpr const char *name = "forktail";

private:
	std::vector<std::unique_ptr<Redis>> servers_, sentinels_;
};

} // namespace forktail::test
