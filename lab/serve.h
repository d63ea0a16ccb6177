// SPDX-License-Identifier: MIT
// `forktail lab serve`: servers for other programs, mainly tests and benchmarks in other languages. It prints
// their addresses, and stops them on request or when its caller ends.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"
#include "lab/servers/servers.h"

namespace forktail::lab
{

struct ServeOptions {
	ServerPlan plan;	     // kind, number and options
	std::string directory;	     // of data, sockets and logs, which remain; "": a temporary one
	std::vector<std::string> of; // addresses of the servers that a proxy is in front of
};

// The plans to start one after another: the requested servers, after those they need. False: the options are
// invalid; *error is one sentence.
bool PlanServe(const ServeOptions &options, std::vector<ServerPlan> *plans, std::string *error);

// Starts the servers, prints one line of JSON, and waits until standard input closes, the parent or all
// servers end, or a signal arrives. False: servers did not start, or none is left; *error is one sentence.
bool Serve(Session *session, const ServeOptions &options, const std::vector<ServerPlan> &plans,
	   std::string *error);

} // namespace forktail::lab
