// SPDX-License-Identifier: MIT
// The directory of snapshots: their names, and which are removed when there are too many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot_plan.h"

namespace forktail::live::guard
{

struct SavedSnapshot {
	std::string name;
	uint64_t number = 0; // of its marker
	uint64_t bytes = 0;  // of its files, including those shared with the ring
	bool kept = false;   // it has a file named kKeepFile
};

// A file that every snapshot of a trigger has: what fired. It is also the marker by which a snapshot is known
// as one of ours. Its member "number" increases by one from snapshot to snapshot, so their order does not
// depend on a clock.
inline constexpr char kMarker[] = "trigger.json";
// With a file of this name in it, a snapshot is never removed.
inline constexpr char kKeepFile[] = "keep";

// 20261123T081503Z-redis-server-6379-stall-fork; realtime_ns is the time of the trigger.
std::string SnapshotName(uint64_t realtime_ns, const Firing &first);

// Directories that have a marker under the name that it says, the oldest first. Anything else, also a renamed
// snapshot, is not ours.
std::vector<SavedSnapshot> SnapshotsIn(const std::string &directory);

// The number of the next snapshot's marker.
uint64_t NextNumber(const std::string &directory);

// Removes the oldest snapshots until at most `count` with at most `bytes` in total remain; never `keep`, the
// one just taken, nor one with a kKeepFile, which does not count either. Returns how many were removed.
size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep);

} // namespace forktail::live::guard
