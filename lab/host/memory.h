// SPDX-License-Identifier: MIT
// What the machine is made to be for an experiment: a cgroup that limits memory (v1 or v2, whichever the host
// has), swap in compressed memory or in a file, soft interrupts over all CPUs. The keeper undoes all of it,
// however the lab ends.
#pragma once

#include <cstdint>
#include <string>

#include "lab/session.h"

namespace forktail
{

// Makes a cgroup whose processes may use so much memory together, their files in the page cache included;
// what is more goes to swap, or without any is killed. *path is its directory, for Command::cgroup.
// With v1 and swap the session's Steps do what kswapd would: there are 16 MiB beyond the limit until the
// next.
bool LimitMemory(Session *session, const std::string &name, uint64_t bytes, std::string *path,
		 std::string *error);
// Puts a running process into it. What it has allocated before doesn't count.
bool EnterGroup(const std::string &path, pid_t pid, std::string *error);
// Waits until its processes are gone.
bool RemoveGroup(Session *session, const std::string &path, std::string *error);

struct Swap {
	std::string device; // "/dev/zram3", or the file
};

// kind: zram, or file (in `directory`, which must lie on a disk). Used before any other swap.
bool MakeSwap(Session *session, const std::string &kind, uint64_t bytes, const std::string &directory,
	      Swap *swap, std::string *error);
// Takes as long as reading back what living processes have there.
bool RemoveSwap(Session *session, Swap *swap, std::string *error);

// Receive and send steering (RPS, XPS) of the interface over all CPUs, or none: softirqs then stay on the CPU
// where the interrupt came, or on the loopback interface where the sender runs. A single send queue leaves
// nothing to steer. The keeper puts back what was. False: *error says what this host lacks.
bool SpreadSoftirqs(Session *session, const std::string &interface, bool on, std::string *error);

// "256MiB", "1GiB", "4096" -> bytes. False: not such a size.
bool ParseBytes(const std::string &text, uint64_t *bytes);

} // namespace forktail
