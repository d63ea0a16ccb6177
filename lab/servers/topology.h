// SPDX-License-Identifier: MIT
// Data of a scenario's servers: plans, running instances, and the topology. Only data and lookup, for the
// kinds' files and for servers.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/host/session.h"
#include "listen.h"
#include "redis.h"

namespace forktail::lab
{

struct ServerKind;

// A server behind a proxy.
struct Behind {
	std::string name;    // "": the proxy uses its address
	std::string address; // "127.0.0.1:7001", or a socket's path
};

// A ServerSpec with every template replaced.
struct ServerPlan {
	std::string name, kind;
	int count = 1;
	std::string program = {}; // instead of the kind's program; "": the kind's
	// Further arguments: {"--appendonly", "yes"}. nutcracker: lines of its pool ("timeout: 400"); entries
	// without a colon are arguments ("-m 512"). haproxy: lines of its global section ("nbthread 4").
	// Sentinels: settings of the primary ("down-after-milliseconds 1000"); "--loglevel debug" is an
	// argument.
	std::vector<std::string> config = {};
	std::vector<std::string> environment = {}; // "NAME=VALUE", in addition to the lab's
	bool tcp = false;
	std::string cpus;		 // a list in taskset's format; "each"; or ""
	uint64_t memory_bytes = 0;	 // 0: no limit
	std::string of;			 // nutcracker, haproxy: the servers behind it; sentinel: the primary
	std::vector<Behind> behind = {}; // nutcracker, haproxy: the same, for external servers
	std::string replica_of; // instance i replicates instance i of that server, modulo their number
	int replicas = 0;	// of each primary, with cluster
	bool cluster = false;
	bool by_program = false; // messages name an instance by its program
};

struct Instance : Endpoint {
	std::string name;   // "redis", or "redis3" of several
	std::string server; // its plan's name: "redis"
	const ServerKind *kind = nullptr;
	Child *child = nullptr;
	std::string directory, log;
	std::string cgroup;  // of its memory limit, or ""
	std::string cpus;    // its CPUs, or ""
	std::string version; // "7.0.15"
	// A connection to it; null unless it runs and has the Redis protocol.
	std::unique_ptr<Redis> redis;
};

struct Topology {
	std::vector<ServerPlan> plans;			  // of running servers
	std::vector<std::unique_ptr<Instance>> instances; // in the order of their start
	std::string directory;				  // of all data
	std::vector<std::string> cgroups;
};

// The instances of a server ("redis": all of them; of a Cluster its primaries first, then their replicas in
// the same order) or the one instance ("redis3").
std::vector<Instance *> InstancesOf(const Topology &topology, const std::string &name);

// The Sentinels' name of the primary.
constexpr const char *kSentinelMaster = "forktail";

} // namespace forktail::lab
