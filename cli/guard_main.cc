// SPDX-License-Identifier: MIT
// forktail-guard: watches a ring while it is recorded (docs/guides/always-on.md). forktail-record starts it.
// It can also be started by hand on a ring or on a recording that is being written.
//
// Exit status: 0 stopped by a signal, 2 usage, 3 the ring or a socket is not available.
#include <cstdio>
#include <filesystem>
#include <string>

#include "command.h"
#include "common/process.h"
#include "live/guard.h"

namespace
{

int Fail(const std::string &why, int status)
{
	forktail::live::guard::Say(forktail::live::guard::Level::Error, why);
	return status;
}

} // namespace

int main(int argc, char **argv)
{
	using namespace forktail;
	using namespace forktail::cli;
	live::guard::NotifyBegin();
	live::guard::GuardOptions options;
	live::guard::Config config;
	std::string error;
	int status = kDone;
	CLI::App app(
	    "Watch the ring that forktail record --keep writes: take snapshots when a trigger fires, "
	    "explain them, and serve metrics.",
	    "forktail-guard");
	app.set_version_flag("--version", "forktail-guard " FORKTAIL_VERSION);
	app.add_option("DIR", options.path, "Directory of the ring, or a recording that is being written")
	    ->required();
	app.add_option(
	       "--on", options.rules,
	       "Take a snapshot when the condition is true: 'iteration > 50ms', 'stall(fork) > 20ms', "
	       "'rate(page-in) > 100/s', 'drops > 0'; repeatable")
	    ->type_name("RULE")
	    ->allow_extra_args(false);
	app.add_option("--metrics", options.metrics,
		       "Serve metrics at ADDR:PORT or on the Unix socket /PATH.sock")
	    ->type_name("ADDRESS");
	app.add_option("--metrics-textfile", options.metrics_textfile,
		       "Write metrics to this directory, for node_exporter's textfile collector")
	    ->type_name("DIR");
	app.add_flag("--control", options.control,
		     "Accept requests of forktail trigger on the socket DIR/control");
	app.add_option("--config", options.config, "Read triggers and the other settings from FILE (TOML)")
	    ->type_name("FILE");
	if (!Parse(&app, argc - 1, argv + 1, &status))
		return status;
	std::error_code ec;
	if (!options.config.empty())
		options.config = std::filesystem::absolute(options.config, ec);
	options.path = std::filesystem::absolute(options.path, ec);
	options.forktail = forktail::common::FindProgram("forktail");
	if (!std::filesystem::exists(options.path, ec))
		return Fail("cannot find the ring " + options.path +
				": name the directory that forktail record --keep writes",
			    kCant);
	if (!live::guard::Confine(options.path, &error))
		return Fail(error, kCant);
	if (!live::guard::ReadOptions(options, &config, &error))
		return Fail(error, kUsage);
	return live::guard::RunGuard(options, config, &error) ? kDone : Fail(error, kCant);
}
