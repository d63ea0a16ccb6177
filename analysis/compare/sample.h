// SPDX-License-Identifier: MIT
// A run reduced to what is compared: percentiles, the time of its requests and servers by cause, episodes and
// forks, latency by second, and the facts that should be equal on both sides.
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

// Latencies by size: 128 buckets per power of two, so that a bucket is less than 0.8 % wide.
constexpr unsigned kBucketBits = 7;
uint32_t LatencyBucket(uint64_t ns);
uint64_t BucketNs(uint32_t bucket); // its lowest latency

// One second of the run: the requests due in it, and the episodes that began in it.
struct SecondOfRun {
	std::vector<std::pair<uint32_t, uint32_t>> latencies; // (bucket, count), by bucket
	std::vector<std::pair<Cause, uint64_t>> cause_ns;     // of slow requests, by cause
	std::vector<Cause> episodes;			      // the main cause of each
};

// A fact that should be equal in two runs.
struct RunFact {
	std::string group; // "host", "server", "configuration", "load"
	std::string name;  // "kernel", "maxmemory"
	std::string value;
};

using ByCause = std::array<double, kCauses>;

struct EpisodeSum {
	uint64_t count = 0;
	uint64_t requests = 0;
	uint64_t worst_ns = 0;	 // highest latency
	uint64_t longest_ns = 0; // longest episode
	double request_seconds = 0;
};

struct ForkSum {
	uint64_t count = 0;
	double seconds = 0;
	uint64_t longest_ns = 0;
	uint64_t rss_bytes = 0; // the server's maximum in the recorder's memory series; 0: unknown
};

// The mean parts of requests near a percentile, in ns; `known` false: too few were slow.
struct Composition {
	bool known = false;
	ByCause ns = {};
};

struct RunSample {
	std::string path;
	std::string name;      // the path's last part
	uint64_t requests = 0; // answered
	uint64_t errors = 0;
	uint64_t drops = 0; // events that the recorder dropped
	double seconds = 0; // from the first request due to the last answer
	double rate = 0;    // answers per second of those
	Latencies latencies;
	uint64_t slow_ns = 0; // the threshold of "slow", the same for all compared runs
	uint64_t slow_requests = 0;
	double slow_seconds = 0;		       // sum of slow requests' latencies
	ByCause request_seconds = {};		       // of those, by cause
	ByCause stalled_seconds = {};		       // of the serving threads' time
	std::array<EpisodeSum, kCauses> episodes = {}; // by main cause
	uint64_t longest_episode_ns = 0;
	ForkSum forks;
	Composition at_p99, at_p99_9;
	std::vector<SecondOfRun> by_second;
	std::vector<RunFact> facts;
	std::vector<std::string> notes; // what is unknown or missing in it
	uint32_t shared_mode = 0666;	// as Run::shared_mode
};

// Reads a run. *slow_ns 0 becomes its p99, so that the next run uses the same threshold. False: *error is one
// sentence, *status the exit status.
bool TakeSample(const std::string &path, uint64_t memory_bytes, const std::function<void(double)> &progress,
		uint64_t *slow_ns, RunSample *sample, std::string *error, int *status);

} // namespace forktail::analysis::compare
