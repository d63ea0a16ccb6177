// SPDX-License-Identifier: MIT
// A memory limit for an experiment's servers: a cgroup of the host's version, 1 or 2. The keeper removes it,
// however the lab ends.
#pragma once

#include <cstdint>
#include <string>

#include "session.h"

namespace forktail::lab
{

constexpr uint64_t kBeyondBytes = 16 << 20;

// Creates a cgroup whose processes may use `bytes` of memory together, including their page cache. More goes
// to swap; without swap processes are killed. *path is its directory, for Command::cgroup. With v1 and swap,
// Step() does the work of kswapd, and kBeyondBytes more are allowed in between.
bool LimitMemory(Session *session, const std::string &name, uint64_t bytes, std::string *path,
		 std::string *error);
// Moves a running process into it. Earlier allocations do not count.
bool EnterGroup(const std::string &path, pid_t pid, std::string *error);
// Removes it after its processes have ended.
bool RemoveGroup(Session *session, const std::string &path, std::string *error);

} // namespace forktail::lab
