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
	lab::ServerPlan plan =
	    plan_of("haproxy", options.tcp, {"nbthread " + std::to_string(options.threads)});
	plan.behind = {{"server", lab::Endpoint{options.server.socket, options.server.port}.Address()}};
	return started(plan);
}

} // namespace

Haproxy::Haproxy(const HaproxyOptions &options) : Served(start(options), 0) {}

} // namespace forktail::test
