// SPDX-License-Identifier: MIT
// What proxies of tests have in common: a process on a Unix socket in a temporary directory of its own or,
// when asked for, on a free TCP port of 127.0.0.1. Started means it accepts connections; destroyed means it
// and its files are gone.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/endpoint.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

class Proxy
{
public:
	explicit Proxy(bool tcp) : tcp_(tcp) {}
	~Proxy(); // SIGTERM, and SIGKILL if that does not end it within seconds
	Proxy(const Proxy &) = delete;
	Proxy &operator=(const Proxy &) = delete;

	pid_t pid() const { return process_->pid(); }
	Process &process() { return *process_; }
	std::string socket() const { return tcp_ ? "" : dir_.file("proxy.sock"); } // "" with tcp
	int port() const { return port_; }					   // 0 without tcp
	Endpoint endpoint() const { return {socket(), port_}; }
	const std::string &directory() const { return dir_.path(); }

protected:
	// `prepare` writes what the program reads, for endpoint(), and returns its arguments; `log` is what
	// it said beside its errors.
	void start(const std::function<std::vector<std::string>()> &prepare,
		   const std::function<std::string()> &log);
	std::string file(const std::string &name) const { return dir_.file(name); }

private:
	TempDir dir_;
	bool tcp_;
	int port_ = 0;
	std::unique_ptr<Process> process_;
};

} // namespace forktail::test
