// SPDX-License-Identifier: MIT
// Redis' Sentinels: started on configuration files of their own, which they rewrite, and waited for until
// they know each other and all replicas, since before that they could not fail over.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "starting.h"

namespace forktail::lab
{
namespace
{

constexpr double kKnownSeconds = 60; // they greet each other every 2 s, and ask for replicas every 10 s

bool WriteSentinelConfig(const std::string &path, const ServerPlan &plan, int primary_port,
			 std::vector<std::string> *arguments, std::string *error)
{
	std::ofstream out(path);
	out << "sentinel monitor " << kSentinelMaster << " 127.0.0.1 " << primary_port << ' '
	    << plan.count / 2 + 1 << '\n';
	std::string all;
	for (const std::string &word : plan.config)
		all += word + ' ';
	std::istringstream words(all);
	for (std::string setting, value; words >> setting;) {
		if (!(words >> value)) {
			*error = plan.name + "'s setting " + setting + " has no value";
			return false;
		}
		if (setting.rfind("--", 0) == 0)
			arguments->insert(arguments->end(), {setting, value});
		else
			out << "sentinel " << setting << ' ' << kSentinelMaster << ' ' << value << '\n';
	}
	out.close();
	if (!out)
		*error = "cannot write " + path + ": " + std::strerror(errno);
	return static_cast<bool>(out);
}

bool FindPrimary(const Starting &starting, Instance **primary, std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	std::vector<Instance *> found = InstancesOf(*starting.topology, plan.of);
	if (found.empty() || !found[0]->redis) {
		*error = plan.name + " cannot watch " + plan.of + ", which does not run";
		return false;
	}
	*primary = found[0];
	return NeedTcp(**primary, plan.name + " cannot watch it", error);
}

bool StartSentinel(const Starting &starting, size_t, Instance *instance, std::string *error)
{
	Instance *primary;
	std::string file = instance->directory + "/sentinel.conf";
	std::vector<std::string> arguments = {"--sentinel"};
	return FindPrimary(starting, &primary, error) &&
	       WriteSentinelConfig(file, *starting.plan, primary->port, &arguments, error) &&
	       StartRedisInstance(starting, file, arguments, instance, error);
}

bool AwaitSentinels(const Starting &starting, std::string *error)
{
	Instance *primary;
	RedisInfo info;
	if (!FindPrimary(starting, &primary, error) ||
	    !ReadInfo(starting.session, primary->redis.get(), &info, error))
		return false;
	const std::string replicas = info["connected_slaves"];
	const std::string others = std::to_string(starting.plan->count - 1);
	for (Instance *sentinel : InstancesOf(*starting.topology, starting.plan->name)) {
		auto knows = [&](bool *yes, std::string *why) {
			std::vector<std::string> reply;
			if (!Ask(starting.session, sentinel->redis.get(),
				 {"SENTINEL", "MASTER", kSentinelMaster}, &reply, why))
				return false;
			std::map<std::string, std::string> about;
			for (size_t i = 0; i + 1 < reply.size(); i += 2)
				about[reply[i]] = reply[i + 1];
			*yes = about["flags"] == "master" && about["num-slaves"] == replicas &&
			       about["num-other-sentinels"] == others;
			return true;
		};
		if (!Await(starting.session, kKnownSeconds,
			   sentinel->name + " does not know all replicas and Sentinels", knows, error))
			return false;
	}
	return true;
}

} // namespace

// A Sentinel is a redis-server told to be one.
extern const ServerKind kSentinel;
const ServerKind kSentinel = {.name = "sentinel",
			      .programs = {"redis-server", "valkey-server"},
			      .start = StartSentinel,
			      .ready = AwaitSentinels,
			      .load_words = {"--master", kSentinelMaster},
			      .guide_option = "--sentinel",
			      .of = "watching",
			      .needs_tcp = true,
			      .carries = false};

} // namespace forktail::lab
