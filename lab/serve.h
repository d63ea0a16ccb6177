// SPDX-License-Identifier: MIT
// `forktail lab serve`: servers for whoever asks, a test or a benchmark in another language above all. It
// says where they are, and ends them when it is told to or when who asked is gone.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"
#include "lab/servers/servers.h"

namespace forktail::lab
{

struct ServeOptions {
	ServerPlan plan;	     // kind, number, and how they are started
	std::string directory;	     // of data, sockets and logs, which stay; "": a temporary one
	std::vector<std::string> of; // addresses of the servers that a proxy is in front of
};

// The plans that are started one after the other: those of the options, after what they need. False: no such
// servers can be had, *error is one sentence.
bool PlanServe(const ServeOptions &options, std::vector<ServerPlan> *plans, std::string *error);

// Starts the servers, prints one line of JSON, and waits until standard input closes, the parent or all
// servers have ended, or a signal comes. False: servers did not start, or none is left; *error is one
// sentence.
bool Serve(Session *session, const ServeOptions &options, const std::vector<ServerPlan> &plans,
	   std::string *error);

} // namespace forktail::lab
