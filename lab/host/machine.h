// SPDX-License-Identifier: MIT
// What this machine is and what it has to spare for an experiment.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::lab
{

// Of a file in /proc or /sys; "" if there is none.
std::string FirstLine(const std::string &path);

// Where a program is: in PATH, or in the directories of programs for root, where not everybody's PATH looks.
// "": nowhere.
std::string FindProgram(const std::string &name);

std::string HostName();
std::string KernelRelease();
std::string CpuName(); // with how many there are: "Intel(R) Xeon(R) ..., 2 CPUs"

// Memory that can be had without swapping (MemAvailable), or 0 if the kernel doesn't say.
uint64_t AvailableMemoryBytes();

struct DiskRoom {
	uint64_t free_bytes = 0;
	bool in_memory = false; // a tmpfs: what is written there takes memory
};
DiskRoom RoomIn(const std::string &directory);

// How large a data set, in MiB, can be had of `wanted_mb`: less when memory or disk is short, 0 if so short
// that an experiment would show nothing. *why says what was short ("" when nothing was).
uint64_t ChooseSizeMb(uint64_t wanted_mb, uint64_t available_bytes, const DiskRoom &room, std::string *why);

} // namespace forktail::lab
