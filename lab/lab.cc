// SPDX-License-Identifier: MIT
// The command line of `forktail lab`; see lab.h.
#include "lab/lab.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>

#include "lab/demo.h"

namespace forktail
{
namespace
{

constexpr int kDone = 0, kUsage = 2, kEnvironment = 3;

int Demonstrate(const DemoOptions &options)
{
	if (geteuid() != 0) {
		fprintf(stderr,
			"forktail lab: the demo records with kernel programs, which only root may load: "
			"try sudo\n");
		return kEnvironment;
	}
	Session session;
	std::string error, left;
	bool good = OpenSession(&session, &error) && RunDemo(&session, options, &error);
	bool clean = CloseSession(&session, &left);
	int signal = StopSignal();
	if (!good)
		fprintf(stderr, "forktail lab: %s\n", error.c_str());
	if (!clean)
		fprintf(stderr, "forktail lab: %s\n", left.c_str());
	if (!good && signal) {
		// Whoever waits for us, a shell script above all, should see what ended us.
		std::signal(signal, SIG_DFL);
		raise(signal);
	}
	return good && clean ? kDone : kEnvironment;
}

} // namespace

int LabMain(int argc, char **argv)
{
	CLI::App app("Experiments: start a server, a load and the recorder, and explain what happened.",
		     "forktail lab");
	app.require_subcommand(1);

	DemoOptions demo;
	CLI::App *run = app.add_subcommand(
	    "demo", "Record one redis-server under load while it takes a snapshot and rewrites its AOF.");
	run->add_option("--out", demo.out, "Run directory to make (default: runs/demo-<time>)")
	    ->type_name("DIR");
	run->add_option("--seconds", demo.seconds, "Length of the load")
	    ->type_name("S")
	    ->check(CLI::Range(1.0, 3600.0))
	    ->capture_default_str();
	run->add_option("--rate", demo.rate, "Requests per second")
	    ->type_name("R")
	    ->check(CLI::Range(1.0, 10e6))
	    ->capture_default_str();
	run->add_option("--size-mb", demo.size_mb, "Size of the data set, in MiB of the server's memory")
	    ->type_name("N")
	    ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
	    ->capture_default_str();
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &e) {
		return app.exit(e) == 0 ? kDone : kUsage;
	}
	return Demonstrate(demo);
}

} // namespace forktail
