// SPDX-License-Identifier: MIT
// A real redis-server for a test, or a relative: on a Unix socket and, when asked for, a free TCP port of
// 127.0.0.1 too.
#pragma once
#include <string>
#include <vector>

#include "tests/support/servers/served.h"

struct redisContext;

namespace forktail::test
{

struct RedisOptions {
	bool tcp = false;
	// Further arguments: {"--appendonly", "yes"}. No snapshots are taken by themselves unless asked for
	// here.
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
	// in decimal, the elements of arrays a line each. Throws when the connection fails.
	std::string command(const std::vector<std::string> &words);
	// A value of INFO ("latest_fork_usec"), or "" when there is none.
	std::string info(const std::string &name);

private:
	std::string socket_;
	redisContext *connection_;
};

// A server that Debian 12 has not ("valkey-server", or Redis 8's "redis-server"), for RedisOptions::program.
// "": this machine has none, and the test has to say that it is skipped.
std::string newer_server(const std::string &name);

// A TCP port of 127.0.0.1 that nothing listens on at this moment.
int free_port();

} // namespace forktail::test
