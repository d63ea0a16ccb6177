// SPDX-License-Identifier: MIT
// A real twemproxy, whose program is nutcracker, for a test: in front of the given servers, on a Unix socket
// or, if requested, on a free TCP port of 127.0.0.1. The servers have to outlive it.
#pragma once
#include <string>
#include <vector>

#include "tests/support/servers/served.h"

namespace forktail::test
{

struct NutcrackerOptions {
	enum Protocol { REDIS, MEMCACHED };

	Protocol protocol = REDIS;
	// Where each listens: "127.0.0.1:6379" or "/run/redis.sock". The proxy names them server0, server1,
	// ...
	std::vector<std::string> servers = {};
	bool named =
	    true; // false: a server's place in the ring follows from its address, not from server0, ...
	std::string distribution = "ketama"; // or "modula", "random"
	bool tcp = false;
	// More settings of the pool: {"timeout: 400", "auto_eject_hosts: true"}.
	std::vector<std::string> settings = {};
};

class Nutcracker : public Served
{
public:
	explicit Nutcracker(const NutcrackerOptions &options);
	std::string stats() const; // its statistics, as JSON
};

} // namespace forktail::test
