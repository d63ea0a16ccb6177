// SPDX-License-Identifier: MIT
// Saves a part of a ring as a run directory while the recorder writes, so that it is not evicted. The
// recorder is neither involved nor paused. Sealed segments are immutable and hard-linked; the segment that is
// being written is copied up to its last complete block.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace forktail::live::snapshot
{

struct SnapshotRequest {
	std::string ring;	     // its directory
	uint64_t from_ns = 0;	     // CLOCK_MONOTONIC of the boot of the ring's newest segment
	uint64_t to_ns = UINT64_MAX; // does not wait for data after now
	std::string why;	     // for run.json: the trigger, or "requested"
	std::string out;	     // the run directory to create, in an existing parent
	// More files in it, with their contents: complete when the directory appears, as all others.
	std::vector<std::pair<std::string, std::string>> files = {};
};

struct SnapshotResult {
	uint64_t from_ns = 0,
		 to_ns = 0;    // its time span: whole segments, so it may exceed the request
	uint32_t segments = 0; // files
	uint32_t copied = 0;   // files that could not be linked or were being written
	uint64_t bytes = 0;    // of all files; linked files take no extra space while the ring has them
};

enum class SnapshotWhy : uint8_t {
	Done,
	NoRing,	  // no such directory, or no segments in it
	Nothing,  // no data of that time: evicted, or not recorded yet
	Exists,	  // `out` exists
	DiskFull, // or a quota is exceeded; nothing is left behind
	Cant,	  // no permission, damaged, ...
};

// Returns Done, or the reason with one sentence in *error; then `out` does not exist. Directories of killed
// snapshots next to `out` are removed. `taken` may be null.
SnapshotWhy TakeSnapshot(const SnapshotRequest &asked, SnapshotResult *taken, std::string *error);

} // namespace forktail::live::snapshot
