// SPDX-License-Identifier: MIT
// Starts and ends proxies for tests; see proxy.h.
#include "tests/support/proxy.h"

#include <csignal>
#include <stdexcept>

#include "tests/support/server.h"

namespace forktail::test
{

void Proxy::start(const std::function<std::vector<std::string>()> &prepare,
		  const std::function<std::string()> &log)
{
	std::string program, why;
	// A port that was free may be taken by the time the proxy binds it: try another one.
	for (int attempt = 0; attempt < 5; attempt++) {
		port_ = tcp_ ? free_port() : 0;
		const std::vector<std::string> argv = prepare();
		program = argv[0];
		process_ = std::make_unique<Process>(argv);
		const bool up = eventually(
		    [&] {
			    return !process_->running() ||
				   (accepts(endpoint()) && (!tcp_ || listens(process_->pid(), port_)));
		    },
		    Seconds(30));
		if (up && process_->running())
			return;
		why = process_->err() + log();
		process_.reset();
	}
	throw std::runtime_error(program + " does not answer: " + why);
}

Proxy::~Proxy()
{
	if (!process_)
		return;
	process_->signal(SIGCONT); // a test may have stopped it
	process_->signal(SIGTERM);
	process_->wait(Seconds(10));
}

} // namespace forktail::test
