// SPDX-License-Identifier: MIT
// A real twemproxy for a test; see nutcracker.h.
#include "tests/support/nutcracker.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <sstream>
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

// Whether this process listens on this TCP port: what accepts a connection there may be another's server, and
// twemproxy's answers don't say whose they are.
bool listens(pid_t pid, int port)
{
	char local[16];
	std::snprintf(local, sizeof(local), ":%04X", port);
	// "0: 0100007F:1F90 00000000:0000 0A ... inode": 0A is LISTEN, the inode the tenth word.
	std::istringstream sockets(read_file("/proc/net/tcp"));
	std::string inode;
	for (std::string line; inode.empty() && std::getline(sockets, line);) {
		std::istringstream words(line);
		const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
		if (word.size() > 9 && word[3] == "0A" && word[1].find(local) != std::string::npos)
			inode = word[9];
	}
	std::error_code gone;
	for (const auto &fd :
	     std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone))
		if (std::filesystem::read_symlink(fd, gone) == "socket:[" + inode + "]")
			return true;
	return false;
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
