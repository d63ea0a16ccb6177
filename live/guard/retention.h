// SPDX-License-Identifier: MIT
// The directory of snapshots: their names, and which are removed when there are too many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot_plan.h"

namespace forktail::live::guard
{

struct Kept {
	std::string name;
	uint64_t bytes = 0; // of its files, including those shared with the ring
};

// 20261123T081503Z-redis-server-6379-stall-fork; realtime_ns is the time of the trigger.
std::string SnapshotName(uint64_t realtime_ns, const Fired &first);

// Directories with names of SnapshotName(), the oldest first; other files are ignored.
std::vector<Kept> SnapshotsIn(const std::string &directory);

// Removes the oldest snapshots until at most `count` with at most `bytes` in total remain; never `keep`, the
// one just taken. Returns how many were removed.
size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep);

} // namespace forktail::live::guard
