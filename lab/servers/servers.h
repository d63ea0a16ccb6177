// SPDX-License-Identifier: MIT
// The servers of a scenario: redis-server (or valkey-server), memcached, nutcracker, Redis' Sentinel, alone,
// as replicas, as a Cluster or behind proxies. Started on free ports or Unix sockets in the session's
// temporary directory, waited for until they serve, pinned and limited; the session ends them. Whoever is a
// primary to others, or watched by Sentinels, listens on TCP; nodes of a Cluster and Sentinels do so anyway.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/listen.h"
#include "lab/redis.h"
#include "lab/session.h"

namespace forktail
{

// A ServerSpec with every template replaced.
struct ServerPlan {
	std::string name, kind;
	int count = 1;
	// Further arguments: {"--appendonly", "yes"}. Of a nutcracker, lines of its pool ("timeout: 400"),
	// and what has no colon is an argument ("-m 512"). Of Sentinels, what they are to know of the primary
	// ("down-after-milliseconds 1000"), and "--loglevel debug" is an argument.
	std::vector<std::string> config;
	bool tcp = false;
	std::string cpus;	   // a list as taskset has it; "each"; or ""
	uint64_t memory_bytes = 0; // 0: no limit
	std::string of;		   // nutcracker: the servers behind it; sentinel: the primary
	std::string replica_of;	   // instance i copies instance i of that server, modulo their number
	int replicas = 0;	   // of each primary, with cluster
	bool cluster = false;
};

struct Instance : Endpoint {
	std::string name;   // "redis", or "redis3" of several
	std::string server; // its plan's name: "redis"
	std::string kind;
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

// Starts all instances of a plan, beside those that run, and waits until they serve: a replica until it is in
// step with its primary, a Cluster until every node says cluster_state:ok, Sentinels until they know each
// other and every replica. Logs go to `logs`. False: *error is one sentence.
bool StartServers(Session *session, const ServerPlan &plan, const std::string &logs, Topology *topology,
		  std::string *error);

// Ends all servers of the topology and removes their data and cgroups.
bool StopServers(Session *session, Topology *topology, std::string *error);

// kill -9, as an accident would have it; the session doesn't take its end for a failure. Returns when it is
// gone.
bool KillInstance(Session *session, Instance *instance, std::string *error);

// Moves the first `slots` slots that `from` has to `to`, ten keys at a time as redis-cli --cluster reshard
// does.
bool MoveSlots(Session *session, Topology *topology, Instance *from, Instance *to, int slots,
	       std::string *error);

// What Sentinels call the primary that they watch.
constexpr const char *kSentinelMaster = "forktail";

// How forktail-load is to reach a server, proxy, cluster or Sentinels: {"-s", PATH}, {"--server", ...}.
// logged: with what a log of each request wants to know, which servers lie behind a proxy.
std::vector<std::string> LoadWords(const Topology &topology, const std::string &name, bool logged = false);

// Is there a program for servers of this kind on this machine? *path is it, *version what it says: "7.0.15".
bool FindServer(const std::string &kind, std::string *path, std::string *version);

} // namespace forktail
