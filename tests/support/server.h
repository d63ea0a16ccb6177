// SPDX-License-Identifier: MIT
// A real redis-server for a test: in a temporary directory of its own, on a Unix socket and, when asked for,
// a free TCP port of 127.0.0.1. Constructed means it answers; destroyed means it and its files are gone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/tempdir.h"

struct redisContext;

namespace forktail::test
{

struct RedisOptions {
	bool tcp = false;
	// Further arguments: {"--appendonly", "yes"}. No snapshots are taken by themselves unless asked for
	// here.
	std::vector<std::string> config;
	std::string program = "redis-server";
	std::vector<std::string> before = {}; // arguments ahead of all others: a configuration file
};

class Redis
{
public:
	explicit Redis(const RedisOptions &options = {});
	~Redis(); // SIGTERM, and SIGKILL if that does not end it within seconds
	Redis(const Redis &) = delete;
	Redis &operator=(const Redis &) = delete;

	pid_t pid() const { return process_->pid(); }
	Process &process() { return *process_; }
	std::string socket() const { return dir_.file("redis.sock"); }
	int port() const { return port_; } // 0 without tcp
	const std::string &directory() const { return dir_.path(); }
	std::string log() const; // what the server has logged

	// Sends one command and returns its reply as text: nil as "(nil)", errors as "(error) ...", numbers
	// in decimal, the elements of arrays a line each. Throws when the connection fails.
	std::string command(const std::vector<std::string> &words);
	// A value of INFO ("latest_fork_usec"), or "" when there is none.
	std::string info(const std::string &name);

private:
	bool start(const RedisOptions &options, std::string &why);

	TempDir dir_;
	int port_ = 0;
	std::unique_ptr<Process> process_;
	redisContext *connection_ = nullptr;
};

// A server that Debian 12 has not ("valkey-server", or Redis 8's "redis-server"), for RedisOptions::program:
// the one that script/servers made. "": it could not, and the test has to say that it is skipped.
std::string newer_server(const std::string &name);

// A TCP port of 127.0.0.1 that nothing listens on at this moment.
int free_port();

} // namespace forktail::test
