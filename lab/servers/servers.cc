// SPDX-License-Identifier: MIT
// What is the same for servers of all kinds: program, directory, CPUs and limit of each instance, and the end
// of all. The rest is the kind's (kinds.h).
#include "servers.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <sys/stat.h>

#include "lab/host/memory.h"
#include "starting.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

constexpr double kGoneSeconds = 60; // giving back a lot of memory, some of it swapped

// Of instance `number`, from 0.
std::string CpusOf(const ServerPlan &plan, size_t number)
{
	if (plan.cpus != "each")
		return plan.cpus;
	cpu_set_t allowed;
	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	std::vector<int> cpus;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(static_cast<size_t>(cpu), &allowed))
			cpus.push_back(cpu);
	return std::to_string(cpus[number % cpus.size()]);
}

bool MakeDirectory(const std::string &path, std::string *error)
{
	std::error_code ec;
	if (fs::create_directories(path, ec) || !ec)
		return true;
	*error = "cannot create the directory " + path + ": " + ec.message();
	return false;
}

bool AddInstance(const Starting &starting, const std::string &logs, size_t number, size_t of,
		 std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	auto instance = std::make_unique<Instance>();
	instance->name = plan.name + (of > 1 ? std::to_string(number + 1) : "");
	instance->server = plan.name;
	instance->kind = starting.kind;
	instance->version = starting.version;
	instance->cgroup = starting.cgroup;
	instance->cpus = CpusOf(plan, number);
	instance->directory = starting.topology->directory + "/" + instance->name;
	instance->log = logs + "/" + instance->name + ".log";
	if (!MakeDirectory(instance->directory, error))
		return false;
	Instance *added = instance.get();
	starting.topology->instances.push_back(std::move(instance));
	return starting.kind->start(starting, number, added, error);
}

} // namespace

bool StartServers(Session *session, const ServerPlan &plan, const std::string &logs, Topology *topology,
		  std::string *error)
{
	Starting starting = {session, &plan, FindKind(plan.kind), topology, "", "", ""};
	if (!plan.program.empty() && starting.kind) {
		starting.program = plan.program;
		starting.version = VersionOf(plan.program);
	} else if (!FindServer(plan.kind, &starting.program, &starting.version)) {
		const char *program = starting.kind ? starting.kind->programs[0] : nullptr;
		if (program && plan.by_program)
			*error = "cannot start " + std::string(program) + " (" + program +
				 "): " + std::strerror(ENOENT);
		else
			*error =
			    "no program is installed for a server of kind " + plan.kind + " (" + plan.name +
			    ")" +
			    (starting.kind && starting.kind->made != Made::No ? ": script/servers builds one"
									      : "");
		return false;
	}
	if (!MakeDirectory(logs, error) ||
	    (topology->directory.empty() && !MakeTempDirectory(session, &topology->directory, error)))
		return false;
	if (plan.memory_bytes) {
		if (!LimitMemory(session, plan.name, plan.memory_bytes, &starting.cgroup, error))
			return false;
		topology->cgroups.push_back(starting.cgroup);
	}
	topology->plans.push_back(plan);
	size_t all =
	    static_cast<size_t>(plan.count) * (plan.cluster ? 1 + static_cast<size_t>(plan.replicas) : 1);
	for (size_t i = 0; i < all; i++)
		if (!AddInstance(starting, logs, i, all, error))
			return false;
	return !starting.kind->ready || starting.kind->ready(starting, error);
}

bool KillInstance(Session *session, Instance *instance, std::string *error)
{
	instance->redis.reset();
	return WaitForEnd(session, instance->child, SIGKILL, kGoneSeconds, error);
}

bool StopServers(Session *session, Topology *topology, std::string *error)
{
	// All at once: a primary that is gone makes its replicas talk, and nothing of it is wanted.
	for (auto &instance : topology->instances)
		if (instance->child && !instance->child->ended) {
			instance->child->needed = false;
			kill(instance->child->pid, SIGKILL);
		}
	for (auto &instance : topology->instances)
		if (instance->child && !WaitForEnd(session, instance->child, 0, kGoneSeconds, error))
			return false;
	for (const std::string &cgroup : topology->cgroups)
		if (!RemoveGroup(session, cgroup, error))
			return false;
	if (!topology->directory.empty()) {
		std::error_code ec;
		fs::remove_all(topology->directory, ec);
		if (ec) {
			*error = "cannot remove " + topology->directory + ": " + ec.message();
			return false;
		}
		Release(session->keeper, Leftover::kDirectory, topology->directory);
	}
	*topology = {};
	return true;
}

} // namespace forktail::lab
