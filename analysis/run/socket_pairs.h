// SPDX-License-Identifier: MIT
// Finds the same sockets in a load generator's log and in a kernel log. Both logs have the client's port, or
// the inode of its Unix socket. Ports are used again, so their times must overlap as well.
#pragma once

#include <cstdint>
#include <vector>

#include "run.h"

namespace forktail::analysis
{

// A connection of the load generator's log, from an instant on.
struct SameSocket {
	uint64_t opened_ns;
	uint32_t connection; // index into Run::connections
};

// By connection of a kernel log: those of the load generator's log that are the same socket, by time. Sockets
// that cannot be distinguished from others have none.
using SocketPairs = std::vector<std::vector<SameSocket>>;

// Times of the two logs may differ by bound_ns.
SocketPairs PairSockets(const Run &kernel, const Run &run, uint64_t bound_ns);

// Copies the threads that read a connection, which only a kernel log has, to the same connection of `run`.
// One that was opened again had several sockets, and has none.
void TakeReaders(const Run &kernel, const SocketPairs &pairs, Run *run);

} // namespace forktail::analysis
