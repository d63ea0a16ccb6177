// SPDX-License-Identifier: MIT
// Servers started by lab/servers for a test, in a separate session. For this folder's files only: tests use
// the classes built on it (server.h, memcached.h, ...).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lab/host/session.h"
#include "lab/servers/servers.h"

namespace forktail::test
{

struct Started {
	lab::Session session;
	lab::Topology topology;

	// Data and sockets go into `directory` and stay. "": into a temporary one.
	explicit Started(const std::string &directory = "");
	~Started(); // all servers have ended and temporary files are removed
	Started(const Started &) = delete;
	Started &operator=(const Started &) = delete;

	// Starts a plan's servers, in addition to running ones, and returns when they serve. Throws the
	// message of lab/servers, with the log of the server that failed.
	void start(const lab::ServerPlan &plan);
};

// One server of a kind.
lab::ServerPlan plan_of(const std::string &kind, bool tcp, const std::vector<std::string> &config);
std::shared_ptr<Started> started(const lab::ServerPlan &plan);

} // namespace forktail::test
