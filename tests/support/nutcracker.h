// SPDX-License-Identifier: MIT
// A real twemproxy, whose program is nutcracker, for a test: in front of the given servers, on a Unix socket
// in a temporary directory of its own or, when asked for, on a free TCP port of 127.0.0.1. Constructed means
// it accepts connections; destroyed means it and its files are gone. The servers have to outlive it.
#pragma once
#include <string>
#include <vector>

#include "tests/support/proxy.h"

namespace forktail::test
{

struct NutcrackerOptions {
	enum Protocol { REDIS, MEMCACHED };

	Protocol protocol = REDIS;
	// "127.0.0.1:6379:1" or "/run/redis.sock:1": where each listens, and its weight.
	// The pool calls them server0, server1, ...
	std::vector<std::string> servers = {};
	bool named =
	    true; // false: a server's place in the ring follows from its address, not from server0, ...
	std::string distribution = "ketama"; // or "modula", "random"
	bool tcp = false;
	// Further settings of the pool: {"timeout: 400", "auto_eject_hosts: true"}.
	std::vector<std::string> settings = {};
	// Further arguments: {"-m", "512"}.
	std::vector<std::string> arguments = {};
};

class Nutcracker : public Proxy
{
public:
	explicit Nutcracker(const NutcrackerOptions &options);
	std::string log() const;   // what the proxy has logged
	std::string stats() const; // its statistics, JSON

private:
	int stats_port_ = 0;
};

} // namespace forktail::test
