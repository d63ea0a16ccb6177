// SPDX-License-Identifier: MIT
// What servers of a scenario are: what is asked for, the instances that run, and all of them together. Data
// and how it is found, no more, so that each kind's file and what starts them all can both speak of it.
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

// A server that a proxy is in front of.
struct Behind {
	std::string name;    // "": the proxy calls it by its address
	std::string address; // "127.0.0.1:7001", or a socket's path
};

// A ServerSpec with every template replaced.
struct ServerPlan {
	std::string name, kind;
	int count = 1;
	std::string program = {}; // in place of the kind's own; "": that
	// Further arguments: {"--appendonly", "yes"}. Of a nutcracker, lines of its pool ("timeout: 400"),
	// and what has no colon is an argument ("-m 512"). Of a haproxy, lines of
	// its global section ("nbthread 4"). Of Sentinels, what they are to know of the primary
	// ("down-after-milliseconds 1000"), and "--loglevel debug" is an argument.
	std::vector<std::string> config = {};
	std::vector<std::string> environment = {}; // "NAME=VALUE", beside the lab's own
	bool tcp = false;
	std::string cpus;		 // a list as taskset has it; "each"; or ""
	uint64_t memory_bytes = 0;	 // 0: no limit
	std::string of;			 // nutcracker, haproxy: the servers behind it; sentinel: the primary
	std::vector<Behind> behind = {}; // nutcracker, haproxy: the same, of servers that others started
	std::string replica_of;		 // instance i copies instance i of that server, modulo their number
	int replicas = 0;		 // of each primary, with cluster
	bool cluster = false;
	bool by_program = false; // messages call an instance by its program, not by its name
};

struct Instance : Endpoint {
	std::string name;   // "redis", or "redis3" of several
	std::string server; // its plan's name: "redis"
	const ServerKind *kind = nullptr;
	Child *child = nullptr;
	std::string directory, log;
	std::string cgroup;  // that limits its memory, or ""
	std::string cpus;    // where it may run, or ""
	std::string version; // "7.0.15"
	// A connection to it; null unless it lives and speaks Redis' protocol itself.
	std::unique_ptr<Redis> redis;
};

struct Topology {
	std::vector<ServerPlan> plans;			  // of what runs
	std::vector<std::unique_ptr<Instance>> instances; // in the order of their start
	std::string directory;				  // of all data
	std::vector<std::string> cgroups;
};

// The instances of a server ("redis": all of them; of a Cluster its primaries first, then their replicas in
// the same order) or the one instance ("redis3").
std::vector<Instance *> InstancesOf(const Topology &topology, const std::string &name);

// What Sentinels call the primary that they watch.
constexpr const char *kSentinelMaster = "forktail";

} // namespace forktail::lab
