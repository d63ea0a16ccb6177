// SPDX-License-Identifier: MIT
// twemproxy, whose program is nutcracker, as a kind of server: in front of other servers of the topology,
// over whose names it spreads keys.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "starting.h"

namespace forktail::lab
{
namespace
{

// "timeout: 400" -> "timeout"; "" if it is no line of a pool.
std::string SettingOf(const std::string &line)
{
	size_t colon = line.find(':');
	return colon == std::string::npos ? "" : line.substr(0, colon);
}

bool WritePool(const std::string &path, const Starting &starting, const std::vector<Behind> &behind,
	       const Endpoint &endpoint, std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	std::vector<Instance *> instances = InstancesOf(*starting.topology, plan.of);
	bool speaks_redis = instances.empty() || instances[0]->kind->speaks_redis;
	// What twemproxy's own example has, and one connection to each server, its default.
	std::vector<std::string> lines = {"hash: fnv1a_64", "distribution: ketama", "server_connections: 1",
					  std::string("redis: ") + (speaks_redis ? "true" : "false")};
	std::ofstream out(path);
	out << "forktail:\n  listen: " << endpoint.Address() << '\n';
	for (const std::string &line : lines) {
		bool overridden = false;
		for (const std::string &ours : plan.config)
			overridden = overridden || SettingOf(ours) == SettingOf(line);
		if (!overridden)
			out << "  " << line << '\n';
	}
	for (const std::string &line : plan.config)
		if (!SettingOf(line).empty())
			out << "  " << line << '\n';
	out << "  servers:\n";
	// Names, because ketama spreads keys by them: without, by ports and paths that differ in every run.
	for (const Behind &server : behind)
		out << "   - " << server.address << ":1" << (server.name.empty() ? "" : " ") << server.name
		    << '\n';
	out.close();
	if (!out)
		*error = "cannot write " + path + ": " + std::strerror(errno);
	return static_cast<bool>(out);
}

bool StartProxy(const Starting &starting, size_t, Instance *instance, std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	std::vector<Behind> behind = BehindOf(starting);
	if (behind.empty()) {
		*error = plan.name + " has no server behind it: " + plan.of + " does not run";
		return false;
	}
	std::string pool = instance->directory + "/pool.yml", unwritten;
	auto command = [&](const Endpoint &endpoint) {
		WritePool(pool, starting, behind, endpoint, &unwritten);
		Command start = CommandOf(starting, *instance);
		// It has no way to do without a port for its statistics.
		start.argv.insert(start.argv.end(), {"-c", pool, "-o", instance->log, "-a", "127.0.0.1", "-s",
						     std::to_string(FreePort())});
		for (const std::string &line : plan.config)
			if (SettingOf(line).empty()) {
				std::istringstream words(line);
				for (std::string word; words >> word;)
					start.argv.push_back(word);
			}
		return start;
	};
	bool good = StartListening(starting.session, plan.tcp ? "" : instance->directory + "/proxy.sock",
				   command, PatienceSeconds(starting), instance, &instance->child, error);
	if (!unwritten.empty())
		*error = unwritten;
	return good && unwritten.empty();
}

} // namespace

extern const ServerKind kNutcracker;
const ServerKind kNutcracker = {.name = "nutcracker",
				.programs = {"nutcracker"},
				.start = StartProxy,
				.of = "in front of",
				.proxy = true};

} // namespace forktail::lab
