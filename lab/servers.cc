// SPDX-License-Identifier: MIT
// Starting and ending servers of all kinds; see servers.h. What a kind needs beside that is in memcached.cc,
// proxy.cc, sentinel.cc and cluster.cc.
#include "lab/servers.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <sys/stat.h>

#include "lab/limits.h"
#include "lab/servers_parts.h"
#include "recording/recording.h"

namespace forktail
{
namespace
{

namespace fs = std::filesystem;

constexpr double kPatienceSeconds = 20, kLimitedPatienceSeconds = 180;
constexpr double kInStepSeconds = 900; // a full copy of a data set that is under load
constexpr double kGoneSeconds = 60;    // giving back a lot of memory, some of it swapped

bool HasOption(const std::vector<std::string> &config, const std::string &option)
{
	for (const std::string &word : config)
		if (word == option || word.rfind(option + " ", 0) == 0)
			return true;
	return false;
}

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

bool SpeaksRedis(const std::string &kind)
{
	return kind == "redis" || kind == "valkey";
}

// Its primary, if it has one; nullptr too when *error says why there is none.
bool PrimaryOf(const Starting &starting, size_t number, Instance **primary, std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	*primary = nullptr;
	if (plan.replica_of.empty())
		return true;
	std::vector<Instance *> primaries = InstancesOf(*starting.topology, plan.replica_of);
	if (primaries.empty()) {
		*error = plan.name + " can't replicate " + plan.replica_of + ": it doesn't run";
		return false;
	}
	*primary = primaries[number % primaries.size()];
	return NeedTcp(**primary, plan.name + " can't replicate it", error);
}

bool StartRedisKind(const Starting &starting, size_t number, Instance *instance, std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	std::vector<std::string> config = plan.config;
	if (!HasOption(config, "--save"))
		config.insert(config.end(), {"--save", ""});
	if (plan.cluster)
		config.insert(config.end(), {"--cluster-enabled", "yes"});
	Instance *primary;
	if (!PrimaryOf(starting, number, &primary, error))
		return false;
	if (primary)
		config.insert(config.end(), {"--replicaof", "127.0.0.1 " + std::to_string(primary->port)});
	return StartRedisInstance(starting, "", config, instance, error);
}

bool StartInstance(const Starting &starting, size_t number, Instance *instance, std::string *error)
{
	const std::string &kind = starting.plan->kind;
	if (SpeaksRedis(kind))
		return StartRedisKind(starting, number, instance, error);
	if (kind == "memcached")
		return StartMemcached(starting, instance, error);
	if (kind == "nutcracker")
		return StartProxy(starting, instance, error);
	return StartSentinel(starting, instance, error);
}

bool AwaitReplicas(const Starting &starting, std::string *error)
{
	for (Instance *replica : InstancesOf(*starting.topology, starting.plan->name)) {
		auto in_step = [&](bool *yes, std::string *why) {
			RedisInfo info;
			if (!ReadInfo(starting.session, replica->redis.get(), &info, why))
				return false;
			*yes = info["master_link_status"] == "up";
			return true;
		};
		if (!Await(starting.session, kInStepSeconds,
			   replica->name + " is not in step with its primary", in_step, error))
			return false;
	}
	return true;
}

bool MakeDirectory(const std::string &path, std::string *error)
{
	std::error_code ec;
	if (fs::create_directories(path, ec) || !ec)
		return true;
	*error = "can't make the directory " + path + ": " + ec.message();
	return false;
}

bool AddInstance(const Starting &starting, const std::string &logs, size_t number, size_t of,
		 std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	auto instance = std::make_unique<Instance>();
	instance->name = plan.name + (of > 1 ? std::to_string(number + 1) : "");
	instance->server = plan.name;
	instance->kind = plan.kind;
	instance->version = starting.version;
	instance->cgroup = starting.cgroup;
	instance->cpus = CpusOf(plan, number);
	instance->directory = starting.topology->directory + "/" + instance->name;
	instance->log = logs + "/" + instance->name + ".log";
	if (!MakeDirectory(instance->directory, error))
		return false;
	Instance *added = instance.get();
	starting.topology->instances.push_back(std::move(instance));
	return StartInstance(starting, number, added, error);
}

} // namespace

double PatienceSeconds(const Starting &starting)
{
	return starting.cgroup.empty() ? kPatienceSeconds : kLimitedPatienceSeconds;
}

Command CommandOf(const Starting &starting, const Instance &instance)
{
	Command command;
	command.name = instance.name + " (" + fs::path(starting.program).filename().string() + ")";
	command.argv = {starting.program};
	command.output = instance.log;
	command.on_line = AppendTo(instance.log);
	command.cgroup = instance.cgroup;
	command.cpus = instance.cpus;
	return command;
}

bool StartRedisInstance(const Starting &starting, const std::string &file,
			const std::vector<std::string> &config, Instance *instance, std::string *error)
{
	RedisOptions options;
	options.command = CommandOf(starting, *instance);
	options.directory = instance->directory;
	options.tcp = starting.plan->tcp || starting.plan->cluster || instance->kind == "sentinel";
	options.file = file;
	options.config = config;
	options.patience_seconds = PatienceSeconds(starting);
	auto redis = std::make_unique<Redis>();
	bool good = StartRedis(starting.session, options, redis.get(), error);
	instance->child = redis->child;
	static_cast<Endpoint &>(*instance) = *redis;
	if (good)
		instance->redis = std::move(redis);
	return good;
}

bool NeedTcp(const Instance &instance, const std::string &what, std::string *error)
{
	if (instance.port)
		return true;
	*error = instance.name + " listens on a Unix socket, so " + what + ": let it listen on TCP";
	return false;
}

bool Await(Session *session, double seconds, const std::string &late, const Look &look, std::string *error)
{
	uint64_t limit_ns = ft_now_ns() + static_cast<uint64_t>(seconds * 1e9);
	for (;;) {
		bool yes = false;
		if (!look(&yes, error))
			return false;
		if (yes)
			return true;
		if (!Step(session, 20, error))
			return false;
		if (ft_now_ns() > limit_ns) {
			*error = late + " after " + std::to_string(static_cast<int>(seconds)) + " s";
			return false;
		}
	}
}

std::vector<Instance *> InstancesOf(const Topology &topology, const std::string &name)
{
	std::vector<Instance *> found;
	for (const auto &instance : topology.instances)
		if (instance->server == name || instance->name == name)
			found.push_back(instance.get());
	return found;
}

bool StartServers(Session *session, const ServerPlan &plan, const std::string &logs, Topology *topology,
		  std::string *error)
{
	Starting starting = {session, &plan, topology, "", "", ""};
	if (!FindServer(plan.kind, &starting.program, &starting.version)) {
		*error = "there is no program for a server of kind " + plan.kind + " (" + plan.name +
			 ") on this machine";
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
	if (plan.cluster)
		return FormCluster(starting, error);
	if (plan.kind == "sentinel")
		return AwaitSentinels(starting, error);
	return plan.replica_of.empty() || AwaitReplicas(starting, error);
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
			*error = "can't remove " + topology->directory + ": " + ec.message();
			return false;
		}
		ReleaseDirectory(session->keeper, topology->directory);
	}
	*topology = {};
	return true;
}

} // namespace forktail
