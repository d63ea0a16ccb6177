// SPDX-License-Identifier: MIT
// The machine and its free resources for an experiment.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::lab
{

// The first line of a file in /proc or /sys; "" if missing.
std::string FirstLine(const std::string &path);

// The path of a program: in PATH or in the sbin directories, which not every PATH has. "": not found.
std::string FindProgram(const std::string &name);

std::string HostName();
std::string KernelRelease();
std::string CpuName(); // with their number: "Intel(R) Xeon(R) ..., 2 CPUs"

// Memory available without swapping (MemAvailable), or 0 if unknown.
uint64_t AvailableMemoryBytes();

struct DiskRoom {
	uint64_t free_bytes = 0;
	bool in_memory = false; // a tmpfs, whose files take memory
};
DiskRoom RoomIn(const std::string &directory);

// The possible size of a data set in MiB, at most `wanted_mb`: less if memory or disk is short, 0 if too
// little for an experiment. *why names the shortage ("": none).
uint64_t ChooseSizeMb(uint64_t wanted_mb, uint64_t available_bytes, const DiskRoom &room, std::string *why);

} // namespace forktail::lab
