// SPDX-License-Identifier: MIT
// A real twemproxy for a test; see nutcracker.h.
#include "tests/support/nutcracker.h"

#include "tests/support/server.h"

namespace forktail::test
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

Nutcracker::Nutcracker(const NutcrackerOptions &options) : Proxy(options.tcp)
{
	start(
	    [&] {
		    stats_port_ = free_port(); // it has no way to do without one
		    write_file(file("pool.yml"),
			       pool(options, options.tcp ? "127.0.0.1:" + std::to_string(port()) : socket()));
		    std::vector<std::string> argv = {"nutcracker", "-c",	file("pool.yml"),
						     "-o",	   file("log"), "-a",
						     "127.0.0.1",  "-s",	std::to_string(stats_port_)};
		    argv.insert(argv.end(), options.arguments.begin(), options.arguments.end());
		    return argv;
	    },
	    [this] { return log(); });
}

std::string Nutcracker::log() const
{
	return read_file(file("log"));
}

std::string Nutcracker::stats() const
{
	return ask({"", stats_port_}, "", "\n");
}

} // namespace forktail::test
