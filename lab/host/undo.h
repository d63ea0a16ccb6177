// SPDX-License-Identifier: MIT
// Taking back what was done to the machine: cgroups, swap, settings in /sys. The keeper does it when the lab
// has ended, the lab itself between two points of an experiment; what was done is in memory.h, swap.h and
// steering.h.
#pragma once

#include <string>

namespace forktail::lab
{

// Removes a cgroup once its processes are gone, for which it waits. True too if there is none. Else errno
// says why not.
bool RemoveCgroup(const std::string &path);

// Swap off, and its device (/dev/zramN) or file gone. True too if it isn't there, or was no swap yet. Takes
// as long as reading back what lies there and still belongs to a process. Else errno says why not.
bool RemoveSwapDevice(const std::string &path);

// Writes the text in one write, as files of /sys want it. The file has to be there. Else errno says why not.
bool WriteSetting(const std::string &path, const std::string &text);

} // namespace forktail::lab
