// SPDX-License-Identifier: MIT
// Figures of one server in one second for `forktail watch`: made by history.h from live/follow, shown by
// layout.h and json.h. Times are ns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clients.h"
#include "live/follow/live.h"

namespace forktail::live::watch
{

using live::kSecondNs;
constexpr uint64_t kMinuteSeconds = 60;
using Part = live::CausePart;

constexpr uint64_t kNoIteration = UINT64_MAX; // in strips: no data for that second

struct ThreadFigures {
	std::string name;
	bool serves = false; // has an event loop, or is the server's main thread
	bool child = false;  // of a process that the server forked
	std::vector<Part> parts;
};

// Its texts are sanitized. duration_ns 0: none.
struct WorstIteration : live::Iteration {
	std::string thread_name = {};
};

// An unfinished span of a serving thread.
struct Open {
	std::string thread;
	analysis::Cause cause = analysis::Cause::Unknown;
	uint64_t start_ns = 0, so_far_ns = 0;
	std::string detail;
};

struct Child : live::Child {
	uint64_t last_took_ns = 0; // duration of the previous child in this role; 0: none seen
};

struct Taker {
	std::string comm;
	uint64_t ns = 0;
};

struct Figures {
	uint64_t start_ns = 0;	  // CLOCK_MONOTONIC of the recording host, a whole second
	uint64_t realtime_ns = 0; // since 1970; 0: unknown
	bool accounted = false;	  // complete; else only the events so far
	// Iterations of at least the recorder's --min-span that ended in this second, of all serving threads.
	uint64_t iterations = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
	WorstIteration worst;
	std::vector<ThreadFigures> threads;
	std::vector<Open> open;
	std::vector<Taker> taken; // largest first
	uint64_t forks = 0, fork_ns = 0;
	uint64_t fsyncs = 0, fsync_ns = 0, fsync_longest_ns = 0;
	std::string fsync_file; // of the longest
	uint64_t disk_reads = 0, disk_writes = 0, disk_bytes = 0, disk_longest_ns = 0;
	uint64_t dropped = 0; // records of all servers
	RequestFigures requests;

	uint64_t end_ns() const { return start_ns + kSecondNs; }
};

// The serving threads' time by cause, without idle: stalls first, then by time. *threads is their number.
std::vector<Part> ServingParts(const Figures &second, size_t *threads);
// Total stall time of the serving threads.
uint64_t StalledNs(const Figures &second);

// Adds `part` to the part of the same cause.
void AddPart(const Part &part, std::vector<Part> *to);
// Keeps the longer interval and its name.
void KeepLonger(uint64_t ns, const std::string &detail, Part *part);

// The percentile `p` (0 to 1): the smallest duration that at least this share of them does not exceed.
// Reorders the durations.
uint64_t Percentile(std::vector<uint64_t> *durations, double p);

} // namespace forktail::live::watch
