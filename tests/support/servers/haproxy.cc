// SPDX-License-Identifier: MIT
// A real HAProxy for a test. See haproxy.h.
#include "tests/support/servers/haproxy.h"

#include "tests/support/servers/started.h"

namespace forktail::test
{
namespace
{

std::shared_ptr<Started> start(const HaproxyOptions &options)
{
	nlohmann::json plan =
	    plan_of("haproxy", options.tcp, {"nbthread " + std::to_string(options.threads)});
	const std::string &socket = options.server.socket;
	plan["behind"].push_back(
	    {"server", socket.empty() ? "127.0.0.1:" + std::to_string(options.server.port) : socket});
	return started(plan);
}

} // namespace

Haproxy::Haproxy(const HaproxyOptions &options) : Served(start(options), 0) {}

} // namespace forktail::test
