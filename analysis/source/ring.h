// SPDX-License-Identifier: MIT
// What forktail-record --keep leaves in a directory: segments, each a whole recording of some seconds, which
// together are one. There may be thousands of them, so what is asked about one is looked up, not gathered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recording/recording.h"

namespace forktail::analysis
{

// What a segment's manifest says of its place.
struct SegmentHead {
	bool known = false; // false: it is gone meanwhile, or its beginning is damaged
	uint64_t start_ns = 0;
	std::string boot_id;
};

SegmentHead ReadHead(const std::string &path);

// Whether a file's name is a segment's: "segment-0000000042.forktail".
bool IsSegment(const std::string &path);

// Whether somebody writes to a file that was opened: its writer has it locked as long as it does.
bool BeingWritten(int fd);

class Ring
{
public:
	Ring() = default;
	// Of files that lie side by side; what is no segment is left aside.
	explicit Ring(std::vector<std::string> paths);

	size_t size() const { return segments_.size(); }
	const std::string &path(size_t i) const { return segments_[i].path; }
	// Its manifest is read when it is first asked for.
	const SegmentHead &Head(size_t i);
	// Leaves only segments of the boot that the newest is of: times of another boot are other times. How
	// many are left out.
	size_t LeaveNewestBoot();
	// [first, end) of the segments that hold what was recorded in [from_ns, to_ns].
	std::pair<size_t, size_t> Reaching(uint64_t from_ns, uint64_t to_ns);
	// Leaves only those.
	void Leave(std::pair<size_t, size_t> range);

private:
	struct Segment {
		std::string path;
		std::optional<SegmentHead> head;
	};
	size_t FirstAfter(uint64_t t_ns);

	std::vector<Segment> segments_; // by number
};

// The segments of a directory. False: *error is one sentence.
bool FindRing(const std::string &directory, Ring *ring, std::string *error);

// From the earliest to the latest instant that blocks of a kind speak of in a recording (of 0: of any kind),
// and, if `clocks` isn't null, its readings of the time of day. False: there is none, or it can't be read.
bool TimeOfBlocks(const std::string &path, uint32_t kind, uint64_t *start_ns, uint64_t *end_ns,
		  std::vector<ft_clock> *clocks);

} // namespace forktail::analysis
