// SPDX-License-Identifier: MIT
// Merges what every segment of a ring repeats: threads, names, series, quotas, the recorder's cost. The
// segments together are one recording, in which each of these occurs once. Any other recording has no earlier
// segment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/run/connection_ids.h"
#include "analysis/run/run.h"
#include "open_spans.h"

namespace forktail::analysis
{

// One process of a recorder: it may have stopped and resumed in its ring. Its data begins with the first
// segment that still exists.
struct Session {
	uint64_t began_ns = 0; // when the recorder started; its first segments may have been evicted
	uint64_t first_ns = 0; // of the first segment that was read
	uint64_t last_ns = 0;  // of its last record
	OpenSpans open;
	ConnectionIds connections;
	uint32_t load = UINT32_MAX; // of its kernel log: index into Run::loads
	// After the recorder reduced its sample, by index into Run::connections: whether it no longer
	// followed this one. All requests of such connections are left out, so that the whole log has one
	// sample.
	bool reduced = false;
	std::vector<uint8_t> unsampled;

	bool LeavesOut(uint32_t connection) const
	{
		return reduced && connection < unsampled.size() && unsampled[connection];
	}

	bool cut() const { return began_ns && began_ns < first_ns; }
};

struct OpenFile;

struct SegmentMerge {
	// By text: the index in the run's list.
	std::unordered_map<std::string, uint32_t> details, stacks, series;
	std::map<std::pair<uint32_t, uint64_t>, size_t> threads; // (tid, start) -> index into Run::threads
	std::map<uint32_t, ft_loop> loops;			 // by tid, the last
	std::unordered_map<std::string, std::string> states;	 // notes that state a fact: subject -> fact
	std::unordered_set<std::string> notes;
	std::vector<std::string> programs;
	uint32_t first_program = 0;
	std::map<uint64_t, Session> sessions; // by began_ns
	size_t file = SIZE_MAX;		      // index into Run::files of the entry for all of them
	// The total damage, the number of damaged files, and the first one's name.
	ft_damage damage = {};
	size_t damaged = 0;
	std::string damaged_name;
	bool left_out = false;	     // its clock cannot be compared with the run's
	uint64_t lost = 0, gone = 0; // unreadable blocks; segments that were evicted while they were read

	// Adds the cost from a file: since it was begun, up to then. *sum: the total.
	void AddCost(const OpenFile *of, const Cost &cost, Cost *sum);

private:
	const OpenFile *cost_of_ = nullptr; // the file of `cost_`
	Cost costs_, cost_;		    // the total of files before it
};

} // namespace forktail::analysis
