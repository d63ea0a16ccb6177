// SPDX-License-Identifier: MIT
// Standard input holds the servers: the parent's end of the pipe closes however it ends. The end of a parent
// whose input outlives it, such as a terminal, is noticed by its process id.
#include "serve.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "common/json.h"
#include "lab/servers/kinds.h"

namespace forktail::lab
{
namespace
{

using OrderedJson = nlohmann::ordered_json;

constexpr int kLookMs = 100;

// "primary", "replica", "sentinel", "proxy", or "server".
std::string RoleOf(const std::vector<ServerPlan> &plans, const Instance &instance, size_t number)
{
	for (const ServerPlan &plan : plans) {
		if (plan.name != instance.server)
			continue;
		if (plan.cluster)
			return number < static_cast<size_t>(plan.count) ? "primary" : "replica";
		if (!plan.replica_of.empty())
			return "replica";
	}
	for (const ServerPlan &plan : plans)
		if (plan.replica_of == instance.server)
			return "primary";
	return instance.kind->proxy ? "proxy" : instance.kind->guide_option ? "sentinel" : "server";
}

OrderedJson Described(const std::vector<ServerPlan> &plans, const Topology &topology)
{
	OrderedJson servers = OrderedJson::array();
	for (const ServerPlan &plan : plans) {
		std::vector<Instance *> instances = InstancesOf(topology, plan.name);
		for (size_t i = 0; i < instances.size(); i++) {
			const Instance &one = *instances[i];
			servers.push_back({{"name", one.name},
					   {"kind", one.kind->name},
					   {"role", RoleOf(plans, one, i)},
					   {"pid", one.child->pid},
					   {"address", one.Address()},
					   {"socket", one.socket},
					   {"port", one.port},
					   {"directory", one.directory},
					   {"log", one.log},
					   {"version", one.version}});
		}
	}
	return {{"directory", topology.directory}, {"servers", servers}};
}

// Data on standard input is ignored.
bool InputClosed()
{
	char unread[4096];
	ssize_t n = read(0, unread, sizeof(unread));
	return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

// Reports servers that end; the others continue. False: none is left.
bool ReportEnded(const Topology &topology, std::vector<bool> *reported, std::string *error)
{
	size_t left = 0;
	for (size_t i = 0; i < topology.instances.size(); i++) {
		const Child &child = *topology.instances[i]->child;
		left += !child.ended;
		if (!child.ended || (*reported)[i])
			continue;
		(*reported)[i] = true;
		*error = HowItEnded(child);
		if (topology.instances.size() > 1)
			fprintf(stderr, "forktail lab: %s\n", common::VisibleLines(*error).c_str());
	}
	return left > 0;
}

// Waits until the servers must end.
bool Hold(Session *session, const Topology &topology, pid_t parent, std::string *error)
{
	std::vector<bool> reported(topology.instances.size(), false);
	for (const auto &instance : topology.instances)
		instance->child->needed = false;
	for (;;) {
		std::string stopped;
		if (!Step(session, kLookMs, &stopped, 0) || getppid() != parent)
			return true;
		if (!ReportEnded(topology, &reported, error))
			return false;
		pollfd input = {0, POLLIN, 0};
		if (poll(&input, 1, 0) > 0 && InputClosed())
			return true;
	}
}

// The server that a kind needs if the caller has none.
ServerPlan Needed(const ServerPlan &plan)
{
	ServerPlan needed;
	needed.name = needed.kind = "redis";
	needed.tcp = plan.tcp || plan.replicas > 0 || FindKind(plan.kind)->needs_tcp;
	return needed;
}

ServerPlan ReplicasOf(const ServerPlan &primary, int count)
{
	ServerPlan plan = primary;
	plan.name = "replica";
	plan.count = primary.count * count;
	plan.replicas = 0;
	plan.replica_of = primary.name;
	return plan;
}

} // namespace

bool PlanServe(const ServeOptions &options, std::vector<ServerPlan> *plans, std::string *error)
{
	ServerPlan plan = options.plan;
	const ServerKind *kind = FindKind(plan.kind);
	if (!kind) {
		*error = "unknown kind of server \"" + plan.kind + "\": use " + KindNames();
		return false;
	}
	if (!kind->proxy && !options.of.empty())
		*error = "--of needs a proxy: " + plan.kind + " is not a proxy";
	else if (plan.cluster && !kind->speaks_redis)
		*error = "--cluster needs servers with the Redis protocol, not " + plan.kind;
	else if (plan.replicas > 0 && !kind->speaks_redis && (!kind->of || !options.of.empty()))
		*error = "--replicas: " + plan.kind + " does not support replicas";
	for (const std::string &variable : plan.environment)
		if (variable.find('=') == std::string::npos || variable[0] == '=')
			*error = "--env needs NAME=VALUE, not " + variable;
	if (!error->empty())
		return false;
	plan.name = plan.kind;
	for (const std::string &address : options.of)
		plan.behind.push_back({"server" + std::to_string(plan.behind.size() + 1), address});
	plans->clear();
	if (kind->of && options.of.empty()) {
		plans->push_back(Needed(plan));
		plan.of = plans->back().name;
	} else {
		plan.tcp = plan.tcp || plan.replicas > 0;
		plans->push_back(plan);
	}
	if (plan.replicas > 0 && !plan.cluster)
		plans->push_back(ReplicasOf(plans->back(), plan.replicas));
	if (!plan.of.empty())
		plans->push_back(plan);
	return true;
}

bool Serve(Session *session, const ServeOptions &options, const std::vector<ServerPlan> &plans,
	   std::string *error)
{
	const pid_t parent = getppid();
	Topology topology;
	topology.directory = options.directory.empty() ? "" : std::filesystem::absolute(options.directory);
	if (topology.directory.empty() && !MakeTempDirectory(session, &topology.directory, error))
		return false;
	for (const ServerPlan &plan : plans)
		if (!StartServers(session, plan, topology.directory + "/logs", &topology, error))
			return false;
	printf(
	    "%s\n",
	    Described(plans, topology).dump(-1, ' ', false, OrderedJson::error_handler_t::replace).c_str());
	fflush(stdout);
	return Hold(session, topology, parent, error);
}

} // namespace forktail::lab
