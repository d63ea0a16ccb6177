// SPDX-License-Identifier: MIT
// forktail hosts.
#include <cstdio>
#include <cstring>
#include <string>

#include "command.h"
#include "common/json.h"
#include "hosts/hosts.h"

namespace forktail::cli
{
namespace
{

int HostsRun(int argc, char **argv)
{
	CLI::App app(
	    "Run a plan on its hosts: record servers, generate load, and collect everything in one run "
	    "directory (docs/guides/many-hosts.md). Arguments after -- go to mpirun.\n"
	    "Exit status: 0 done, 1 a program died and the run is incomplete, 2 the plan is invalid, 3 the "
	    "run could "
	    "not start.",
	    "forktail hosts run");
	hosts::HostsOptions options;
	bool check = false;
	int own = 0, status = kDone;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	options.mpi.options.assign(argv + (own < argc ? own + 1 : own), argv + argc);
	app.add_option("PLAN", options.mpi.plan, "Plan file (TOML)")->required();
	auto *output =
	    app.add_option("-o,--output", options.mpi.run, "Create this run directory")->type_name("RUN");
	auto *checks =
	    app.add_flag("--check", check, "Print which program would run on which host, and start nothing");
	app.add_option("--hostfile", options.mpi.hostfile,
		       "Use mpirun's hostfile FILE with the hosts and their slots")
	    ->type_name("FILE");
	output->excludes(checks);
	if (!Parse(&app, own, argv, &status))
		return status;
	if (!check && options.mpi.run.empty())
		return Refuse("no run directory is given. Name it with -o RUN.", kUsage);
	std::string error;
	if (!hosts::PrepareHosts(&options, &error, &status))
		return Refuse(error, status);
	if (!check)
		return hosts::RunHosts(options);
	fputs(hosts::DescribePlan(options.plan).c_str(), stdout);
	return kDone;
}

} // namespace

int HostsCommand(int argc, char **argv)
{
	if (argc > 0 && strcmp(argv[0], "run") == 0)
		return HostsRun(argc - 1, argv + 1);
	const bool help = argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
	fputs("forktail hosts run PLAN.toml -o RUN [-- MPIRUN OPTIONS]   generate load and record on several "
	      "hosts\n"
	      "forktail hosts run --help prints the options.\n",
	      help ? stdout : stderr);
	return help ? kDone : kUsage;
}

} // namespace forktail::cli
