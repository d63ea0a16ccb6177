// SPDX-License-Identifier: MIT
// Takes a part out of a ring while it goes on being written: a run directory of its own, that eviction
// doesn't reach. The recorder is neither asked nor paused. Sealed segments are immutable, so that a second
// name for them is enough; the one that is being written is copied as far as it has come.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::live::snapshot
{

struct SnapshotRequest {
	std::string ring;	     // its directory
	uint64_t from_ns = 0;	     // CLOCK_MONOTONIC of the boot that the ring's newest segment is of
	uint64_t to_ns = UINT64_MAX; // what is not there yet is not waited for
	std::string why;	     // for run.json: what fired, "asked for"
	std::string out;	     // the run directory to make; its parent is there, it itself isn't
};

struct SnapshotResult {
	uint64_t from_ns = 0,
		 to_ns = 0;    // what is in it: whole segments, so that it may be more than was asked
	uint32_t segments = 0; // files
	uint32_t copied = 0;   // of them, because they couldn't be linked or were being written
	uint64_t bytes = 0;    // of all of them; what is linked takes no further disk while the ring has it
};

enum class SnapshotWhy : uint8_t {
	Done,
	NoRing,	  // no such directory, or no segments in it
	Nothing,  // nothing is left of that time, or not yet recorded
	Exists,	  // `out` is there already
	DiskFull, // or a quota is; nothing of it is left behind
	Cant,	  // not allowed to, damaged, ...
};

// Done, or why not and one sentence in *error: then nothing is there by that name. It appears whole, by a
// rename; what a snapshot that was killed had begun, beside `out`, is removed by the next. `taken` may be
// null.
SnapshotWhy TakeSnapshot(const SnapshotRequest &asked, SnapshotResult *taken, std::string *error);

} // namespace forktail::live::snapshot
