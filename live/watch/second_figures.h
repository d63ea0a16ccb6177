// SPDX-License-Identifier: MIT
// What one server did in one second, as `forktail watch` shows it: plain figures, made by history.h of what
// live/ says, drawn by layout.h and told as JSON by json.h. Times are ns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "live/follow/live.h"

namespace forktail::live::watch
{

using live::kSecondNs;
constexpr uint64_t kMinuteSeconds = 60;
using Part = live::CausePart;

constexpr uint64_t kNoTurn = UINT64_MAX; // in strips: nothing is known of that second

struct ThreadFigures {
	std::string name;
	bool serves = false; // has an event loop, or is the main thread of the server's own process
	bool child = false;  // of a process that the server forked
	std::vector<Part> parts;
};

// Its texts are visible. duration_ns 0: there was none.
struct WorstTurn : live::Iteration {
	std::string thread_name = {};
};

// What a serving thread is in the middle of.
struct Open {
	std::string thread;
	analysis::Cause cause = analysis::Cause::Unknown;
	uint64_t start_ns = 0, so_far_ns = 0;
	std::string detail;
};

struct Child : live::Child {
	uint64_t last_took_ns = 0; // the one before it in the same role; 0: none was seen
};

struct Taker {
	std::string comm;
	uint64_t ns = 0;
};

struct Figures {
	uint64_t start_ns = 0;	  // CLOCK_MONOTONIC of the recording host, a whole second
	uint64_t realtime_ns = 0; // since 1970; 0: not known
	bool accounted = false;	  // threads are known; else only what was told so far
	// Iterations of at least the recorder's least span that ended in this second, of all serving threads.
	uint64_t turns = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
	WorstTurn worst;
	std::vector<ThreadFigures> threads;
	std::vector<Open> open;
	std::vector<Taker> taken; // most first
	uint64_t forks = 0, fork_ns = 0;
	uint64_t fsyncs = 0, fsync_ns = 0, fsync_longest_ns = 0;
	std::string fsync_file; // of the longest
	uint64_t disk_reads = 0, disk_writes = 0, disk_bytes = 0, disk_longest_ns = 0;
	uint64_t dropped = 0; // records, all servers'

	uint64_t end_ns() const { return start_ns + kSecondNs; }
};

// What the serving threads' time went to, by cause: stalls first, each kind most first. Idle is left out;
// *threads is how many of them there are.
std::vector<Part> ServingParts(const Figures &second, size_t *threads);
// What a second's stalls of the serving threads come to.
uint64_t StalledNs(const Figures &second);

// Adds `part` to that of its cause.
void AddPart(const Part &part, std::vector<Part> *to);
// The longest that is among both is kept with its name.
void KeepLonger(uint64_t ns, const std::string &detail, Part *part);

// The k-th of n sorted durations that percentile `p` (0..1) is: the smallest that at least so much of them
// don't exceed. Sorts what it is given.
uint64_t Percentile(std::vector<uint64_t> *durations, double p);

} // namespace forktail::live::watch
