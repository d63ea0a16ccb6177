// SPDX-License-Identifier: MIT
// One request to a server and its answer, as bytes: for protocols that no client library here speaks, and for
// tests that mean the bytes.
#pragma once
#include <string>

#include "tests/support/process.h"

namespace forktail::test
{

// Where a server listens: a Unix socket, or a port of 127.0.0.1 when `socket` is empty.
struct Endpoint {
	std::string socket;
	int port = 0;
};

// Whether something accepts connections there.
bool accepts(const Endpoint &server);

// Sends the request on a connection of its own and returns what comes back, up to the first end of `until`.
// Throws with what has come when that is not all of it after `limit`, or when the connection fails.
std::string ask(const Endpoint &server, const std::string &request, const std::string &until = "\r\n",
		Seconds limit = Seconds(10));

} // namespace forktail::test
