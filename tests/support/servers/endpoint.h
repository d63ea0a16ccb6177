// SPDX-License-Identifier: MIT
// One request to a server and its answer, as bytes: for protocols without a client library here, and for
// tests that need the exact bytes.
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

// A TCP port of 127.0.0.1 that is free now, below the kernel's own for clients; each call returns another.
int free_port();

// Whether something accepts connections there.
bool accepts(const Endpoint &server);

// Sends the request on a new connection and returns the answer, up to the first end of `until`. Throws with
// the part received if the rest does not arrive within `limit`, or if the connection fails.
std::string ask(const Endpoint &server, const std::string &request, const std::string &until = "\r\n",
		Seconds limit = Seconds(10));

} // namespace forktail::test
