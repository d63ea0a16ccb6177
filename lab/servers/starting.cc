// SPDX-License-Identifier: MIT
// Waiting goes by looking again and again, in small steps, so that a signal or a server's end is noticed
// meanwhile, and ends when a server at its limit of memory would have been done too.
#include "starting.h"

#include <filesystem>

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

constexpr double kPatienceSeconds = 20, kLimitedPatienceSeconds = 180;

} // namespace

double PatienceSeconds(const Starting &starting)
{
	return starting.cgroup.empty() ? kPatienceSeconds : kLimitedPatienceSeconds;
}

Command CommandOf(const Starting &starting, const Instance &instance)
{
	Command command;
	const std::string program = fs::path(starting.program).filename();
	command.name = starting.plan->by_program ? program : instance.name + " (" + program + ")";
	const std::vector<std::string> &environment = starting.plan->environment;
	if (!environment.empty())
		command.argv = {"env"};
	command.argv.insert(command.argv.end(), environment.begin(), environment.end());
	command.argv.push_back(starting.program);
	command.output = instance.log;
	command.on_line = AppendTo(instance.log);
	command.cgroup = instance.cgroup;
	command.cpus = instance.cpus;
	return command;
}

std::vector<Behind> BehindOf(const Starting &starting)
{
	std::vector<Behind> behind = starting.plan->behind;
	for (const Instance *server : InstancesOf(*starting.topology, starting.plan->of))
		behind.push_back({server->name, server->Address()});
	return behind;
}

bool NeedTcp(const Instance &instance, const std::string &what, std::string *error)
{
	if (instance.port)
		return true;
	*error = instance.name + " listens on a Unix socket: " + what + ". Set `listen = \"tcp\"`.";
	return false;
}

} // namespace forktail::lab
