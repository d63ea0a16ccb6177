// SPDX-License-Identifier: MIT
// Servers started by forktail's Python package for a test, in a separate process (serve.py). For this
// folder's files only: tests use the classes built on it (server.h).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "common/process.h"
#include "tests/support/json.h"

namespace forktail::test
{

struct StartedServer {
	std::string server; // its plan's name
	pid_t pid = -1;
	int pidfd = -1; // readable when it has ended
	std::string socket;
	int port = 0;
	std::string directory, log;
};

struct Started {
	std::string directory;		    // of all data
	std::vector<StartedServer> servers; // in the order of their start

	// Data and sockets go into `directory` and stay. "": into a temporary one.
	explicit Started(const std::string &directory = "");
	~Started(); // all servers have ended and temporary files are removed
	Started(const Started &) = delete;
	Started &operator=(const Started &) = delete;

	// Starts a plan's servers, in addition to running ones, and returns when they serve. Throws the
	// package's message, with the log of the server that failed.
	void start(const nlohmann::json &plan);
	// Sends another request of serve.py. Throws its error.
	nlohmann::json ask(const nlohmann::json &request);

private:
	nlohmann::json answer();

	common::Child child_;
};

// One server of a kind; further keys are the fields of the package's ServerPlan.
nlohmann::json plan_of(const std::string &kind, bool tcp, const std::vector<std::string> &config);
std::shared_ptr<Started> started(const nlohmann::json &plan);
// {"NAME=VALUE"} as the field `environment`.
nlohmann::json environment_of(const std::vector<std::string> &variables);

} // namespace forktail::test
