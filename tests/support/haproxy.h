// SPDX-License-Identifier: MIT
// A real HAProxy for a test: it passes connections on to one server, with several threads, on a Unix socket
// in a temporary directory of its own or, when asked for, on a free TCP port of 127.0.0.1. Constructed means
// it accepts connections; destroyed means it and its files are gone. The server has to outlive it.
#pragma once
#include <memory>
#include <string>

#include "tests/support/endpoint.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace ft::test
{

struct HaproxyOptions {
	Endpoint server = {};
	bool tcp = false;
	int threads = 2;
};

class Haproxy
{
public:
	explicit Haproxy(const HaproxyOptions &options);
	~Haproxy(); // SIGTERM, and SIGKILL if that does not end it within seconds
	Haproxy(const Haproxy &) = delete;
	Haproxy &operator=(const Haproxy &) = delete;

	pid_t pid() const { return process_->pid(); }
	Process &process() { return *process_; }
	std::string socket() const { return tcp_ ? "" : dir_.file("proxy.sock"); } // "" with tcp
	int port() const { return port_; }					   // 0 without tcp
	Endpoint endpoint() const { return {socket(), port_}; }
	const std::string &directory() const { return dir_.path(); }

private:
	bool start(const HaproxyOptions &options, std::string &why);

	TempDir dir_;
	bool tcp_;
	int port_ = 0;
	std::unique_ptr<Process> process_;
};

} // namespace ft::test
