// SPDX-License-Identifier: MIT
// A real HAProxy for a test; see haproxy.h.
#include "tests/support/haproxy.h"

#include "tests/support/server.h"

namespace forktail::test
{
namespace
{

std::string address(const Endpoint &endpoint)
{
	return endpoint.socket.empty() ? "127.0.0.1:" + std::to_string(endpoint.port)
				       : "unix@" + endpoint.socket;
}

} // namespace

Haproxy::Haproxy(const HaproxyOptions &options) : Proxy(options.tcp)
{
	start(
	    [&] {
		    write_file(file("haproxy.cfg"),
			       "global\n  nbthread " + std::to_string(options.threads) +
				   "\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n"
				   "  timeout client 1h\n  timeout server 1h\nlisten test\n  bind " +
				   address(endpoint()) + "\n  server server " + address(options.server) +
				   "\n");
		    return std::vector<std::string>{"haproxy", "-db", "-f", file("haproxy.cfg")};
	    },
	    [] { return std::string(); });
}

} // namespace forktail::test
