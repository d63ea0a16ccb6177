// SPDX-License-Identifier: MIT
// A real memcached for a test; see memcached.h.
#include "tests/support/memcached.h"

#include <csignal>
#include <stdexcept>
#include <unistd.h>

#include "tests/support/server.h"

namespace forktail::test
{

Memcached::Memcached(const MemcachedOptions &options) : tcp_(options.tcp)
{
	std::string why;
	// A port that was free may be taken by the time the server binds it: try another one.
	for (int attempt = 0; attempt < 5; attempt++)
		if (start(options, why))
			return;
	throw std::runtime_error("memcached does not answer: " + why);
}

bool Memcached::start(const MemcachedOptions &options, std::string &why)
{
	std::vector<std::string> argv = {"memcached"};
	if (tcp_) {
		port_ = free_port();
		argv.insert(argv.end(), {"-l", "127.0.0.1", "-p", std::to_string(port_), "-U", "0"});
	} else {
		argv.insert(argv.end(), {"-s", socket()});
	}
	if (geteuid() == 0)
		argv.insert(argv.end(), {"-u", "root"}); // it refuses to run as root unless told to
	argv.insert(argv.end(), options.config.begin(), options.config.end());
	process_ = std::make_unique<Process>(argv);

	const bool up = eventually(
	    [&] {
		    if (!process_->running())
			    return true;
		    try {
			    return accepts(endpoint()) && command("version").rfind("VERSION ", 0) == 0;
		    } catch (const std::exception &) {
			    return false; // it has just ended, or is another server
		    }
	    },
	    Seconds(30));
	// On TCP, what answered could be another server: ours would have ended, or be about to.
	if (up && process_->running() && stat("pid") == std::to_string(pid()))
		return true;
	why = process_->err();
	process_.reset();
	return false;
}

Memcached::~Memcached()
{
	if (!process_)
		return;
	process_->signal(SIGCONT); // a test may have stopped it
	process_->signal(SIGTERM);
	process_->wait(Seconds(10));
}

std::string Memcached::stat(const std::string &name) const
{
	const std::string all = "\n" + command("stats", "END\r\n");
	const std::string line = "\nSTAT " + name + " ";
	const size_t at = all.find(line);
	if (at == std::string::npos)
		return "";
	const size_t from = at + line.size();
	return all.substr(from, all.find('\r', from) - from);
}

} // namespace forktail::test
