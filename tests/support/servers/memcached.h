// SPDX-License-Identifier: MIT
// A real memcached for a test: on a Unix socket or, if requested, on a free TCP port of 127.0.0.1.
#pragma once
#include <string>
#include <vector>

#include "tests/support/servers/served.h"

namespace forktail::test
{

struct MemcachedOptions {
	bool tcp = false;
	// More arguments: {"-m", "128", "-I", "2m"}.
	std::vector<std::string> config = {};
	std::vector<std::string> environment = {}; // "NAME=VALUE" each
};

class Memcached : public Served
{
public:
	explicit Memcached(const MemcachedOptions &options = {});

	// Sends a text command, with CRLF added, and returns the answer including `until`: command("set k 0 0
	// 1\r\nx"), command("get k", "END\r\n").
	std::string command(const std::string &text, const std::string &until = "\r\n") const
	{
		return ask(endpoint(), text + "\r\n", until);
	}
	// A value of "stats" ("curr_items"), or "" without one.
	std::string stat(const std::string &name) const;
};

} // namespace forktail::test
