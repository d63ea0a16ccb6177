// SPDX-License-Identifier: MIT
// A real twemproxy for a test; see nutcracker.h.
#include "tests/support/nutcracker.h"

#include <csignal>
#include <stdexcept>

#include "tests/support/server.h"

namespace ft::test
{
namespace
{

std::string pool(const NutcrackerOptions &options, const std::string &listen)
{
	std::string yaml =
	    "pool:\n  listen: " + listen + "\n  hash: fnv1a_64\n  distribution: " + options.distribution +
	    "\n  redis: " + (options.protocol == NutcrackerOptions::REDIS ? "true" : "false") + "\n";
	for (const auto &setting : options.settings)
		yaml += "  " + setting + "\n";
	yaml += "  servers:\n";
	// Names, because ketama spreads keys by them: without, by ports and paths that differ in every run.
	int number = 0;
	for (const auto &server : options.servers)
		yaml += "   - " + server + (options.named ? " server" + std::to_string(number++) : "") + "\n";
	return yaml;
}

} // namespace

Nutcracker::Nutcracker(const NutcrackerOptions &options) : tcp_(options.tcp)
{
	std::string why;
	// A port that was free may be taken by the time the proxy binds it: try another one.
	for (int attempt = 0; attempt < 5; attempt++)
		if (start(options, why))
			return;
	throw std::runtime_error("nutcracker does not answer: " + why);
}

bool Nutcracker::start(const NutcrackerOptions &options, std::string &why)
{
	port_ = tcp_ ? free_port() : 0;
	stats_port_ = free_port(); // it has no way to do without one
	write_file(dir_.file("pool.yml"),
		   pool(options, tcp_ ? "127.0.0.1:" + std::to_string(port_) : socket()));
	std::vector<std::string> argv = {
	    "nutcracker", "-c", dir_.file("pool.yml"),	    "-o", dir_.file("log"), "-a",
	    "127.0.0.1",  "-s", std::to_string(stats_port_)};
	argv.insert(argv.end(), options.arguments.begin(), options.arguments.end());
	process_ = std::make_unique<Process>(argv);

	const bool up = eventually(
	    [&] {
		    return !process_->running() ||
			   (accepts(endpoint()) && (!tcp_ || listens(process_->pid(), port_)));
	    },
	    Seconds(30));
	if (up && process_->running())
		return true;
	why = process_->err() + log();
	process_.reset();
	return false;
}

Nutcracker::~Nutcracker()
{
	if (!process_)
		return;
	process_->signal(SIGCONT); // a test may have stopped it
	process_->signal(SIGTERM);
	process_->wait(Seconds(10));
}

std::string Nutcracker::log() const
{
	return read_file(dir_.file("log"));
}

std::string Nutcracker::stats() const
{
	return ask({"", stats_port_}, "", "\n");
}

} // namespace ft::test
