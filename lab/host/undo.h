// SPDX-License-Identifier: MIT
// Undoes changes of the machine: cgroups, swap, settings in /sys. The keeper does it after the lab ends, the
// lab itself between two points of an experiment. The changes are made in memory.h, swap.h and steering.h.
#pragma once

#include <string>

namespace forktail::lab
{

// Waits for the end of a cgroup's processes and removes it. True also if it does not exist. False: errno.
bool RemoveCgroup(const std::string &path);

// Switches swap off and removes its device (/dev/zramN) or file. True also if it does not exist. Takes as
// long as reading back the pages of running processes. False: errno.
bool RemoveSwapDevice(const std::string &path);

// Writes the text to an existing file with one write, as files in /sys require. False: errno.
bool WriteSetting(const std::string &path, const std::string &text);

} // namespace forktail::lab
