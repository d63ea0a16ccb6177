// SPDX-License-Identifier: MIT
// A limit of memory for an experiment's servers: a cgroup, version 1 or 2, whichever the host has. The keeper
// takes it back, however the lab ends.
#pragma once

#include <cstdint>
#include <string>

#include "session.h"

namespace forktail::lab
{

constexpr uint64_t kBeyondBytes = 16 << 20;

// Makes a cgroup whose processes may use so much memory together, their files in the page cache included;
// what is more goes to swap, or without any is killed. *path is its directory, for Command::cgroup.
// With v1 and swap the session's Steps do what kswapd would, and there are kBeyondBytes beyond the limit
// until the next.
bool LimitMemory(Session *session, const std::string &name, uint64_t bytes, std::string *path,
		 std::string *error);
// Puts a running process into it. What it has allocated before doesn't count.
bool EnterGroup(const std::string &path, pid_t pid, std::string *error);
// Waits until its processes are gone.
bool RemoveGroup(Session *session, const std::string &path, std::string *error);

} // namespace forktail::lab
