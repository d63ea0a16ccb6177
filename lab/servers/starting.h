// SPDX-License-Identifier: MIT
// Shared by the files of server kinds only; others use servers.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kinds.h"
#include "topology.h"

namespace forktail::lab
{

// The state of one StartServers() call.
struct Starting {
	Session *session;
	const ServerPlan *plan;
	const ServerKind *kind;
	Topology *topology;
	std::string program, version;
	std::string cgroup; // "": no limit
};

// Time limit for a server's start and answers: at its memory limit, each page may have to be read from swap.
double PatienceSeconds(const Starting &starting);

// The command of an instance: name, cgroup, CPUs and log.
Command CommandOf(const Starting &starting, const Instance &instance);

// Starts an instance with the Redis protocol: a configuration file (or ""), then these arguments.
bool StartRedisInstance(const Starting &starting, const std::string &file,
			const std::vector<std::string> &config, Instance *instance, std::string *error);

// Creates a Cluster of the plan's instances and waits until it serves.
bool FormCluster(const Starting &starting, std::string *error);

// The servers behind the plan's proxy.
std::vector<Behind> BehindOf(const Starting &starting);

// Checks that the instance listens on TCP; `what` is the reason in the error ("sentinel cannot watch it").
bool NeedTcp(const Instance &instance, const std::string &what, std::string *error);

} // namespace forktail::lab
