// SPDX-License-Identifier: MIT
// A real redis-server for a test, or a compatible server: on a Unix socket and, if requested, also on a free
// TCP port of 127.0.0.1.
#pragma once
#include <string>
#include <vector>

#include "tests/support/servers/served.h"

struct redisContext;

namespace forktail::test
{

struct RedisOptions {
	bool tcp = false;
	// More arguments: {"--appendonly", "yes"}. Snapshots are off unless requested here.
	std::vector<std::string> config = {};
	std::string program = "redis-server";
	std::vector<std::string> environment = {}; // "NAME=VALUE" each
	std::string directory = {};		   // of its files, which stay; "": a temporary one
};

class Redis : public Served
{
public:
	explicit Redis(const RedisOptions &options = {});
	Redis(std::shared_ptr<Started> started, size_t number); // on TCP only
	~Redis();

	std::string socket() const { return socket_; }

	// Sends one command and returns its reply as text: nil as "(nil)", errors as "(error) ...", numbers
	// in decimal, the elements of arrays one per line. Throws if the connection fails.
	std::string command(const std::vector<std::string> &words);
	// A value of INFO ("latest_fork_usec"), or "" without one.
	std::string info(const std::string &name);

private:
	std::string socket_;
	redisContext *connection_;
};

// A server that Debian 12 does not have ("valkey-server", or Redis 8's "redis-server"), for
// RedisOptions::program. "": this machine has none, and the test has to print that it is skipped.
std::string newer_server(const std::string &name);

} // namespace forktail::test
