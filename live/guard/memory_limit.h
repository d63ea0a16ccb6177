// SPDX-License-Identifier: MIT
// The memory limit of this process' cgroup.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::live::guard
{

// The lowest limit of the cgroup and the groups above it, in bytes; UINT64_MAX without one. `root` replaces
// the root of the file system.
uint64_t MemoryLimit(const std::string &root = "");

} // namespace forktail::live::guard
