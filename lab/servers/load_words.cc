// SPDX-License-Identifier: MIT
// Which servers this machine has, and how forktail-load reaches those that run; see servers.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <unistd.h>

#include "lab/servers.h"

namespace forktail
{
namespace
{

// Names of the programs, the preferred one first. A Sentinel is a redis-server told to be one.
std::vector<std::string> ProgramsOf(const std::string &kind)
{
	if (kind == "redis")
		return {"redis-server"};
	if (kind == "valkey")
		return {"valkey-server"};
	if (kind == "sentinel")
		return {"redis-server", "valkey-server"};
	if (kind == "memcached" || kind == "nutcracker")
		return {kind};
	return {};
}

// nutcracker lies where not everybody's PATH looks.
std::string PathOf(const std::string &program)
{
	const char *path = getenv("PATH");
	std::istringstream directories(std::string(path ? path : "") + ":/usr/local/sbin:/usr/sbin");
	for (std::string directory; std::getline(directories, directory, ':');) {
		std::string file = directory + "/" + program;
		if (!directory.empty() && access(file.c_str(), X_OK) == 0)
			return file;
	}
	return "";
}

// The first number with a dot of what it says: "Redis server v=7.0.15 sha=...", "This is nutcracker-0.5.0".
std::string VersionOf(const std::string &path)
{
	FILE *out = popen(("'" + path + "' --version 2>&1").c_str(), "r");
	if (!out)
		return "";
	char chunk[512];
	std::string text;
	while (fgets(chunk, sizeof(chunk), out))
		text += chunk;
	pclose(out);
	const char *kNumber = "0123456789.";
	for (size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string::npos;) {
		size_t end = text.find_first_not_of(kNumber, at);
		std::string number = text.substr(at, end - at);
		if (number.find('.') != std::string::npos)
			return number;
		at = end;
	}
	return "";
}

const ServerPlan *PlanOf(const Topology &topology, const std::string &server)
{
	for (const ServerPlan &plan : topology.plans)
		if (plan.name == server)
			return &plan;
	return nullptr;
}

} // namespace

bool FindServer(const std::string &kind, std::string *path, std::string *version)
{
	for (const std::string &program : ProgramsOf(kind)) {
		*path = PathOf(program);
		if (path->empty())
			continue;
		*version = VersionOf(*path);
		return true;
	}
	return false;
}

std::vector<std::string> LoadWords(const Topology &topology, const std::string &name, bool logged)
{
	std::vector<std::string> words;
	std::vector<Instance *> instances = InstancesOf(topology, name);
	const ServerPlan *plan = instances.empty() ? nullptr : PlanOf(topology, instances[0]->server);
	// Words that name no server would mean whatever listens on the default port.
	bool led = plan && (plan->cluster || plan->kind == "sentinel");
	auto lives = [](const Instance *instance) { return instance->redis != nullptr; };
	if (!plan || (led && std::none_of(instances.begin(), instances.end(), lives)))
		return words;
	// A Cluster and Sentinels tell themselves who is there, so one that was killed isn't named.
	auto add_living = [&](const char *option) {
		for (const Instance *instance : instances)
			if (instance->redis)
				words.insert(words.end(), {option, instance->Address()});
	};
	if (plan->kind == "sentinel") {
		add_living("--sentinel");
		words.insert(words.end(), {"--master", kSentinelMaster});
		return words;
	}
	if (plan->cluster) {
		words = {"--cluster"};
		add_living("--server");
		return words;
	}
	const Instance &first = *instances[0];
	if (instances.size() > 1)
		for (const Instance *instance : instances)
			words.insert(words.end(), {"--server", instance->Address()});
	else if (first.port)
		words = {"-h", "127.0.0.1", "-p", std::to_string(first.port)};
	else
		words = {"-s", first.socket};
	if (plan->kind == "nutcracker") { // all proxies have the same servers
		std::vector<Instance *> behind = InstancesOf(topology, plan->of);
		if (logged)
			for (const Instance *server : behind)
				words.insert(words.end(),
					     {"--behind", server->name + "=" + server->Address()});
		plan = PlanOf(topology, behind[0]->server);
	}
	if (plan->kind == "memcached")
		words.insert(words.end(), {"--protocol", "memcache_text"});
	return words;
}

} // namespace forktail
