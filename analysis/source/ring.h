// SPDX-License-Identifier: MIT
// A flight recorder's directory (forktail-record --keep): segments, each a complete recording of some
// seconds, which together are one. There may be thousands, so facts of a segment are looked up on demand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recording/recording.h"

namespace forktail::analysis
{

// A segment's place in the ring, from its manifest.
struct SegmentHead {
	bool known = false; // false: it was evicted, or its beginning is damaged
	uint64_t start_ns = 0;
	std::string boot_id;
	bool has_requests = false; // its manifest announces requests that the kernel saw
};

SegmentHead ReadHead(const std::string &path);

// Whether a file's name is a segment's: "segment-0000000042.forktail".
bool IsSegment(const std::string &path);

// Whether a process is writing to an open file: the writer holds a lock on it.
bool BeingWritten(int fd);

class Ring
{
public:
	Ring() = default;
	// Of files of one directory; those that are no segments are ignored.
	explicit Ring(std::vector<std::string> paths);

	size_t size() const { return segments_.size(); }
	const std::string &path(size_t i) const { return segments_[i].path; }
	// Reads its manifest on the first call.
	const SegmentHead &Head(size_t i);
	// Keeps only segments of the newest one's boot, because times of different boots cannot be compared.
	// Returns the number of dropped ones.
	size_t LeaveNewestBoot();
	// [first, end) of the segments with data of [from_ns, to_ns].
	std::pair<size_t, size_t> Reaching(uint64_t from_ns, uint64_t to_ns);
	// Keeps only those.
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

// The earliest and latest instant of a recording's blocks of a kind (0: any kind), and, if `clocks` is not
// null, its readings of the time of day. False: no such blocks or readings, or the file is unreadable.
bool TimeOfBlocks(const std::string &path, uint32_t kind, uint64_t *start_ns, uint64_t *end_ns,
		  std::vector<ft_clock> *clocks);

} // namespace forktail::analysis
