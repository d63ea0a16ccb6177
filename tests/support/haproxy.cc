// SPDX-License-Identifier: MIT
// A real HAProxy for a test; see haproxy.h.
#include "tests/support/haproxy.h"

#include <csignal>
#include <stdexcept>

#include "tests/support/server.h"

namespace ft::test
{
namespace
{

std::string address(const Endpoint &endpoint)
{
	return endpoint.socket.empty() ? "127.0.0.1:" + std::to_string(endpoint.port)
				       : "unix@" + endpoint.socket;
}

} // namespace

Haproxy::Haproxy(const HaproxyOptions &options) : tcp_(options.tcp)
{
	std::string why;
	// A port that was free may be taken by the time the proxy binds it: try another one.
	for (int attempt = 0; attempt < 5; attempt++)
		if (start(options, why))
			return;
	throw std::runtime_error("haproxy does not answer: " + why);
}

bool Haproxy::start(const HaproxyOptions &options, std::string &why)
{
	port_ = tcp_ ? free_port() : 0;
	write_file(dir_.file("haproxy.cfg"),
		   "global\n  nbthread " + std::to_string(options.threads) +
		       "\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n"
		       "  timeout server 1h\nlisten test\n  bind " +
		       address(endpoint()) + "\n  server server " + address(options.server) + "\n");
	process_ = std::make_unique<Process>(
	    std::vector<std::string>{"haproxy", "-db", "-f", dir_.file("haproxy.cfg")});
	const bool up = eventually(
	    [&] {
		    return !process_->running() ||
			   (accepts(endpoint()) && (!tcp_ || listens(process_->pid(), port_)));
	    },
	    Seconds(30));
	if (up && process_->running())
		return true;
	why = process_->err();
	process_.reset();
	return false;
}

Haproxy::~Haproxy()
{
	if (!process_)
		return;
	process_->signal(SIGCONT); // a test may have stopped it
	process_->signal(SIGTERM);
	process_->wait(Seconds(10));
}

} // namespace ft::test
