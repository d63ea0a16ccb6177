// SPDX-License-Identifier: MIT
// What a kind of server is started with, and what the kinds' files share. Only for these files: others see
// servers.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kinds.h"
#include "topology.h"

namespace forktail::lab
{

// One call of StartServers.
struct Starting {
	Session *session;
	const ServerPlan *plan;
	const ServerKind *kind;
	Topology *topology;
	std::string program, version;
	std::string cgroup; // "": no limit
};

// How long a server may take for its start and for an answer: at its limit, each page of it may have to be
// read back from swap first.
double PatienceSeconds(const Starting &starting);

// Name, cgroup, CPUs and log of an instance's program.
Command CommandOf(const Starting &starting, const Instance &instance);

// Starts an instance that speaks Redis' protocol, with these arguments behind a configuration file (or "").
bool StartRedisInstance(const Starting &starting, const std::string &file,
			const std::vector<std::string> &config, Instance *instance, std::string *error);

// Makes one Cluster of the plan's instances and waits until it serves.
bool FormCluster(const Starting &starting, std::string *error);

// The servers that the plan's proxy is in front of.
std::vector<Behind> BehindOf(const Starting &starting);

// Of these servers, one that takes connections over TCP, for `what` ("the Sentinels of sentinel").
bool NeedTcp(const Instance &instance, const std::string &what, std::string *error);

} // namespace forktail::lab
