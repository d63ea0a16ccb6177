// SPDX-License-Identifier: MIT
// A run reduced to what is compared: its percentiles, where its requests' and its server's time went, its
// episodes and forks, latency by second, and the facts that ought to be the same on both sides.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/blame/blame.h"
#include "analysis/timeline/causes.h"

namespace forktail::analysis::compare
{

// Latencies by size: 128 buckets to each power of two, so that a bucket is less than 0.8 % wide.
constexpr unsigned kBucketBits = 7;
uint32_t LatencyBucket(uint64_t ns);
uint64_t BucketNs(uint32_t bucket); // its least latency

// What a second of the run had: of requests that were due in it, and episodes that began in it.
struct SecondOfRun {
	std::vector<std::pair<uint32_t, uint32_t>> latencies; // (bucket, how many), by bucket
	std::vector<std::pair<Cause, uint64_t>> cause_ns;     // of slow requests, by cause
	std::vector<Cause> episodes;			      // the main cause of each
};

// Something that two runs that are compared should have in common.
struct RunFact {
	std::string group; // "host", "server", "configuration", "load"
	std::string name;  // "kernel", "maxmemory"
	std::string value;
};

using ByCause = std::array<double, kCauses>;

struct EpisodeSum {
	uint64_t count = 0;
	uint64_t requests = 0;
	uint64_t worst_ns = 0;	 // latency
	uint64_t longest_ns = 0; // episode
	double request_seconds = 0;
};

struct ForkSum {
	uint64_t count = 0;
	double seconds = 0;
	uint64_t longest_ns = 0;
	uint64_t rss_bytes = 0; // the server's at its largest, by the recorder's memory series; 0: not known
};

// The parts of requests about a percentile, on average, in ns; `known` false: too few were slow.
struct Makeup {
	bool known = false;
	ByCause ns = {};
};

struct RunSample {
	std::string path;
	std::string name;      // the path's last part
	uint64_t requests = 0; // answered
	uint64_t errors = 0;
	uint64_t drops = 0; // of the recorder's events
	double seconds = 0; // from the first request due to the last answer
	double rate = 0;    // answers per second of those
	Latencies latencies;
	uint64_t slow_ns = 0; // what was slow: the same of all runs that are compared
	uint64_t slow_requests = 0;
	double slow_seconds = 0;		       // sum of slow requests' latencies
	ByCause request_seconds = {};		       // of those, by cause
	ByCause stalled_seconds = {};		       // of the serving threads' time
	std::array<EpisodeSum, kCauses> episodes = {}; // by the cause with most of its requests' time
	uint64_t longest_episode_ns = 0;
	ForkSum forks;
	Makeup at_p99, at_p99_9;
	std::vector<SecondOfRun> by_second;
	std::vector<RunFact> facts;
	std::vector<std::string> notes; // what limits what is known of it
};

// Reads a run. *slow_ns 0: becomes its p99, so that the next one is asked for the same. False: *error is one
// sentence, *status the exit status.
bool TakeSample(const std::string &path, uint64_t memory_bytes, const std::function<void(double)> &progress,
		uint64_t *slow_ns, RunSample *sample, std::string *error, int *status);

} // namespace forktail::analysis::compare
