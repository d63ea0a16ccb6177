// SPDX-License-Identifier: MIT
// Shared by the tests' servers: a process on a Unix socket in a separate temporary directory or, if
// requested, on a free TCP port of 127.0.0.1. After construction it serves. The destructor removes it and its
// files.
#pragma once
#include <memory>
#include <string>

#include "tests/support/servers/endpoint.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

struct Started;

class Served
{
public:
	Served(const Served &) = delete;
	Served &operator=(const Served &) = delete;

	pid_t pid() const;
	std::string socket() const; // "" with tcp
	int port() const;	    // 0 without tcp
	Endpoint endpoint() const { return {socket(), port()}; }
	const std::string &directory() const;
	std::string log() const; // what the server has printed

	// Its process, for tests that stop or kill it.
	Served &process() { return *this; }
	void signal(int number);  // nothing once wait() has seen its end
	bool wait(Seconds limit); // until it has ended; false if it still runs

protected:
	// One of the started servers.
	Served(std::shared_ptr<Started> started, size_t number);

	const std::shared_ptr<Started> started_;
	const size_t number_;
};

} // namespace forktail::test
