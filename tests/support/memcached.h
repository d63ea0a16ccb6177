// SPDX-License-Identifier: MIT
// A real memcached for a test: on a Unix socket in a temporary directory of its own or, when asked for, on a
// free TCP port of 127.0.0.1; memcached listens on one or the other. Constructed means it answers; destroyed
// means it and its files are gone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/endpoint.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

struct MemcachedOptions {
	bool tcp = false;
	// Further arguments: {"-m", "128", "-I", "2m"}.
	std::vector<std::string> config = {};
};

class Memcached
{
public:
	explicit Memcached(const MemcachedOptions &options = {});
	~Memcached(); // SIGTERM, and SIGKILL if that does not end it within seconds
	Memcached(const Memcached &) = delete;
	Memcached &operator=(const Memcached &) = delete;

	pid_t pid() const { return process_->pid(); }
	Process &process() { return *process_; }
	std::string socket() const { return tcp_ ? "" : dir_.file("memcached.sock"); } // "" with tcp
	int port() const { return port_; }					       // 0 without tcp
	Endpoint endpoint() const { return {socket(), port_}; }
	const std::string &directory() const { return dir_.path(); }

	// Sends a text command, its CRLF is added, and returns the answer up to and with `until`:
	// command("set k 0 0 1\r\nx"), command("get k", "END\r\n").
	std::string command(const std::string &text, const std::string &until = "\r\n") const
	{
		return ask(endpoint(), text + "\r\n", until);
	}
	// A value of "stats" ("curr_items"), or "" when there is none.
	std::string stat(const std::string &name) const;

private:
	bool start(const MemcachedOptions &options, std::string &why);

	TempDir dir_;
	bool tcp_;
	int port_ = 0;
	std::unique_ptr<Process> process_;
};

} // namespace forktail::test
