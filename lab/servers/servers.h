// SPDX-License-Identifier: MIT
// The servers of a scenario: redis-server (or valkey-server), memcached, nutcracker, HAProxy, Redis Sentinel;
// alone, as replicas, as a Cluster or behind proxies. They listen on free ports or Unix sockets in the
// session's temporary directory, can be pinned and limited, and end with the session. Primaries of other
// servers, servers watched by Sentinels, Cluster nodes and Sentinels listen on TCP.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"
#include "topology.h"

namespace forktail::lab
{

// Starts all instances of a plan and waits until they serve: a replica until it is synchronized with its
// primary, a Cluster until every node reports cluster_state:ok, Sentinels until they know each other and
// every replica. Logs go to `logs`. False: *error is one sentence.
bool StartServers(Session *session, const ServerPlan &plan, const std::string &logs, Topology *topology,
		  std::string *error);

// Ends all servers of the topology and removes their data and cgroups.
bool StopServers(Session *session, Topology *topology, std::string *error);

// kill -9, without a failure of the session. Returns when the instance has ended.
bool KillInstance(Session *session, Instance *instance, std::string *error);

// Moves the first `slots` slots of `from` to `to`, ten keys at a time like redis-cli --cluster reshard.
bool MoveSlots(Session *session, Topology *topology, Instance *from, Instance *to, int slots,
	       std::string *error);
// The same with these slots of two running nodes.
bool MoveSlots(Session *session, Topology *topology, Instance *from, Instance *to,
	       const std::vector<size_t> &numbers, std::string *error);

// Options with which forktail-load reaches a server, proxy, cluster or Sentinels: {"-s", PATH}, {"--server",
// ...}. logged: also the servers behind a proxy, for the request log.
std::vector<std::string> LoadWords(const Topology &topology, const std::string &name, bool logged = false);

// The same for a server that does not run yet, so that forktail-load can check a load's other arguments.
std::vector<std::string> CheckWords(const std::string &kind, bool cluster);

// The version in a program's --version output, or "".
std::string VersionOf(const std::string &path);

// Finds the program for servers of this kind: *path and *version, such as "7.0.15".
bool FindServer(const std::string &kind, std::string *path, std::string *version);

} // namespace forktail::lab
