// SPDX-License-Identifier: MIT
// Which thread served which connection, and when: docs/how-it-works/attribution.md, "Which thread serves".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

constexpr uint32_t kNoThread = UINT32_MAX;

// [from_ns, to_ns) of a connection.
struct Served {
	uint64_t from_ns, to_ns;
	uint32_t thread; // index into Run::threads
};

// Per Run::connections, in order and not overlapping; empty if unknown. All are empty without a recorder on
// the server's host, in an older recording, or for a server without epoll.
using ServedConnections = std::vector<std::vector<Served>>;
ServedConnections FindServed(const Run &run);

// The process of server `server` of the run (-1: none is named); 0 and *why if unknown.
uint32_t ProcessOfServer(const Run &run, int server, std::string *why);

// The serving thread of a connection at an instant, or kNoThread.
uint32_t ThreadAt(const std::vector<Served> &connection, uint64_t t_ns);

} // namespace forktail::analysis
