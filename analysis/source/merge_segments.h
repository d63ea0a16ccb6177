// SPDX-License-Identifier: MIT
// What the segments of a ring say again, each for itself: threads, names, series, quotas, the recorder's
// cost. Read beside each other they are one recording, in which all of it is there once. Any other recording
// has said nothing before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/run/run.h"
#include "open_spans.h"

namespace forktail::analysis
{

// One life of a recorder: it may have been ended and have gone on in its ring. What was recorded of it begins
// with its first segment that is there.
struct Session {
	uint64_t began_ns = 0; // when the recorder began; its first segments may be gone
	uint64_t first_ns = 0; // of the first segment that is read
	uint64_t last_ns = 0;  // that anything speaks of
	OpenSpans open;

	bool cut() const { return began_ns && began_ns < first_ns; }
};

struct OpenFile;

struct SegmentMerge {
	// By text, to where it is in the run.
	std::unordered_map<std::string, uint32_t> details, stacks, series;
	std::map<std::pair<uint32_t, uint64_t>, size_t> threads; // (tid, start) -> index into Run::threads
	std::map<uint32_t, ft_loop> loops;			 // by tid, the last
	std::unordered_map<std::string, std::string> states;	 // of notes that tell one: whose -> what
	std::unordered_set<std::string> notes;
	std::vector<std::string> programs;
	uint32_t first_program = 0;
	std::map<uint64_t, Session> sessions; // by began_ns
	size_t file = SIZE_MAX;		      // index into Run::files of the entry for all of them
	// What was met of damage, in how many files, and the first one's name.
	ft_damage damage = {};
	size_t damaged = 0;
	std::string damaged_name;
	bool left_out = false;	     // its clock is another than the run's
	uint64_t lost = 0, gone = 0; // blocks; segments that were evicted while they were read

	// What a file says of its cost: since it was begun, up to then. *sum: what all of them have.
	void AddCost(const OpenFile *of, const Cost &cost, Cost *sum);

private:
	const OpenFile *cost_of_ = nullptr; // whose last word `cost_` is
	Cost costs_, cost_;		    // the former of files before that
};

} // namespace forktail::analysis
