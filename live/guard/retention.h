// SPDX-License-Identifier: MIT
// The directory of snapshots: what they are called, how many there are, and which goes when there are too
// many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot_plan.h"

namespace forktail::live::guard
{

struct Kept {
	std::string name;
	uint64_t bytes = 0; // of its files, those that the ring has too included
};

// 20261123T081503Z-redis-server-6379-stall-fork; realtime_ns is when it happened.
std::string SnapshotName(uint64_t realtime_ns, const Fired &first);

// Names that SnapshotName gave, the oldest first; other files and directories are nobody's business.
std::vector<Kept> SnapshotsIn(const std::string &directory);

// Removes the oldest until there are at most `count` of at most `bytes` together; never `keep`, the name of
// the one just made. How many went.
size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep);

} // namespace forktail::live::guard
