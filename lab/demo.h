// SPDX-License-Identifier: MIT
// The demo: one server, one load, one snapshot, one AOF rewrite, and the explanation of what they did to the
// load's latency.
#pragma once

#include <cstdint>
#include <string>

#include "lab/session.h"

namespace forktail
{

struct DemoOptions {
	std::string out;	 // the run directory, which must not exist; empty: runs/demo-<time>
	double seconds = 30;	 // of load
	double rate = 10'000;	 // requests per second
	uint64_t size_mb = 1024; // of the data set, less if this machine is short of memory or disk
};

// Runs it, and prints the explanation and where the report is. False: *error is one sentence. Whatever was
// started is left to CloseSession.
bool RunDemo(Session *session, const DemoOptions &options, std::string *error);

} // namespace forktail
