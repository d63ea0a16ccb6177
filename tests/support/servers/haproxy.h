// SPDX-License-Identifier: MIT
// A real HAProxy for a test: it forwards connections to one server, with several threads, on a Unix socket
// or, if requested, on a free TCP port of 127.0.0.1. The server has to outlive it.
#pragma once
#include "tests/support/servers/served.h"

namespace forktail::test
{

struct HaproxyOptions {
	Endpoint server = {};
	bool tcp = false;
	int threads = 2;
};

class Haproxy : public Served
{
public:
	explicit Haproxy(const HaproxyOptions &options);
};

} // namespace forktail::test
