// SPDX-License-Identifier: MIT
// Servers that lab/servers has started for a test, in a session of their own. Only for this folder's files:
// tests see what these make of it (server.h, memcached.h, ...).
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

	// Data and sockets go into `directory`, and stay; "": into a temporary one.
	explicit Started(const std::string &directory = "");
	~Started(); // all servers and temporary files are gone
	Started(const Started &) = delete;
	Started &operator=(const Started &) = delete;

	// Starts a plan's servers, beside those that run, and returns when they serve. Throws what
	// lab/servers says, with the log of the server that failed.
	void start(const lab::ServerPlan &plan);
};

// One server of a kind.
lab::ServerPlan plan_of(const std::string &kind, bool tcp, const std::vector<std::string> &config);
std::shared_ptr<Started> started(const lab::ServerPlan &plan);

} // namespace forktail::test
