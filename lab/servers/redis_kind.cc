// SPDX-License-Identifier: MIT
// redis-server as a kind of server, and whatever takes its arguments and commands: alone, as a replica, as a
// Cluster's node. It takes no snapshots unless its configuration says so: forks come when an experiment wants
// them.
#include "kinds.h"
#include "starting.h"

namespace forktail::lab
{
namespace
{

constexpr double kInStepSeconds = 900; // a full copy of a data set that is under load

bool HasOption(const std::vector<std::string> &config, const std::string &option)
{
	for (const std::string &word : config)
		if (word == option || word.rfind(option + " ", 0) == 0)
			return true;
	return false;
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
		*error = plan.name + " cannot replicate " + plan.replica_of + ", which does not run";
		return false;
	}
	*primary = primaries[number % primaries.size()];
	return NeedTcp(**primary, plan.name + " cannot replicate it", error);
}

bool StartNode(const Starting &starting, size_t number, Instance *instance, std::string *error)
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
			   replica->name + " is not synchronized with its primary", in_step, error))
			return false;
	}
	return true;
}

bool AwaitServing(const Starting &starting, std::string *error)
{
	if (starting.plan->cluster)
		return FormCluster(starting, error);
	return starting.plan->replica_of.empty() || AwaitReplicas(starting, error);
}

} // namespace

bool StartRedisInstance(const Starting &starting, const std::string &file,
			const std::vector<std::string> &config, Instance *instance, std::string *error)
{
	RedisOptions options;
	options.command = CommandOf(starting, *instance);
	options.directory = instance->directory;
	options.tcp = starting.plan->tcp || starting.plan->cluster || starting.kind->needs_tcp;
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

ServerKind RedisKind(const char *name, const std::vector<const char *> &programs, Made made)
{
	return {.name = name,
		.programs = programs,
		.start = StartNode,
		.ready = AwaitServing,
		.speaks_redis = true,
		.made = made};
}

extern const ServerKind kRedis;
const ServerKind kRedis = RedisKind("redis", {"redis-server"});

} // namespace forktail::lab
