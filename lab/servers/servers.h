// SPDX-License-Identifier: MIT
// The servers of a scenario: redis-server (or valkey-server), memcached, nutcracker, HAProxy, Redis'
// Sentinel, alone, as replicas, as a Cluster or behind proxies. Started on free ports or Unix sockets in the
// session's temporary directory, waited for until they serve, pinned and limited; the session ends them.
// Whoever is a primary to others, or watched by Sentinels, listens on TCP; nodes of a Cluster and Sentinels
// do so anyway.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"
#include "topology.h"

namespace forktail::lab
{

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
// The same with slots of these numbers, of two nodes that live.
bool MoveSlots(Session *session, Topology *topology, Instance *from, Instance *to,
	       const std::vector<size_t> &numbers, std::string *error);

// How forktail-load is to reach a server, proxy, cluster or Sentinels: {"-s", PATH}, {"--server", ...}.
// logged: with what a log of each request wants to know, which servers lie behind a proxy.
std::vector<std::string> LoadWords(const Topology &topology, const std::string &name, bool logged = false);

// The same for a server that doesn't run yet, so that forktail-load can say what it thinks of a load's other
// words.
std::vector<std::string> CheckWords(const std::string &kind, bool cluster);

// The version that a server's program says of itself; "" if it says none.
std::string VersionOf(const std::string &path);

// Is there a program for servers of this kind on this machine? *path is it, *version what it says: "7.0.15".
bool FindServer(const std::string &kind, std::string *path, std::string *version);

} // namespace forktail::lab
