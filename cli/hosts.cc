// SPDX-License-Identifier: MIT
// forktail hosts.
#include <cstdio>
#include <cstring>
#include <string>

#include "command.h"
#include "common/format/sanitize.h"
#include "hosts/run.h"

namespace forktail::cli
{
namespace
{

int HostsRun(int argc, char **argv)
{
	CLI::App app(
	    "Runs a plan (docs/guides/many-hosts.md) on its hosts: records, puts load, gathers everything in "
	    "one run directory. Words after -- are mpirun's.\n"
	    "Exit status: 0 done, 1 something died and the run has what there is, 2 the plan is not "
	    "one, 3 it could not begin.",
	    "forktail hosts run");
	hosts::HostsOptions options;
	bool check = false;
	int own = 0, status = kDone;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	options.mpi.options.assign(argv + (own < argc ? own + 1 : own), argv + argc);
	app.add_option("PLAN", options.mpi.plan, "the plan (TOML)")->required();
	auto *output = app.add_option("-o,--output", options.mpi.run, "run directory to make");
	auto *checks = app.add_flag("--check", check, "say what would run where, and start nothing");
	app.add_option("--hostfile", options.mpi.hostfile,
		       "mpirun's hostfile: hosts and how many slots they have");
	output->excludes(checks);
	if (!Parse(&app, own, argv, &status))
		return status;
	if (!check && options.mpi.run.empty())
		return Refuse("where to? Name the run's directory with -o RUN", kUsage);
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
	fputs(
	    "forktail hosts run PLAN.toml -o RUN [-- MPIRUN OPTIONS]   load and recorders on several hosts\n"
	    "forktail hosts run --help tells its options.\n",
	    help ? stdout : stderr);
	return help ? kDone : kUsage;
}

} // namespace forktail::cli
