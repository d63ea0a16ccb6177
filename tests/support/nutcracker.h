// SPDX-License-Identifier: MIT
// A real twemproxy, whose program is nutcracker, for a test: in front of the given servers, on a Unix socket
// in a temporary directory of its own or, when asked for, on a free TCP port of 127.0.0.1. Constructed means
// it accepts connections; destroyed means it and its files are gone. The servers have to outlive it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/endpoint.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace ft::test
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

class Nutcracker
{
public:
	explicit Nutcracker(const NutcrackerOptions &options);
	~Nutcracker(); // SIGTERM, and SIGKILL if that does not end it within seconds
	Nutcracker(const Nutcracker &) = delete;
	Nutcracker &operator=(const Nutcracker &) = delete;

	pid_t pid() const { return process_->pid(); }
	Process &process() { return *process_; }
	std::string socket() const { return tcp_ ? "" : dir_.file("proxy.sock"); } // "" with tcp
	int port() const { return port_; }					   // 0 without tcp
	Endpoint endpoint() const { return {socket(), port_}; }
	const std::string &directory() const { return dir_.path(); }
	std::string log() const;   // what the proxy has logged
	std::string stats() const; // its statistics, JSON

private:
	bool start(const NutcrackerOptions &options, std::string &why);

	TempDir dir_;
	bool tcp_;
	int port_ = 0, stats_port_ = 0;
	std::unique_ptr<Process> process_;
};

} // namespace ft::test
