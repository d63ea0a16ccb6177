// SPDX-License-Identifier: MIT
// Episodes: slow requests that overlap in time are one event to a human. Each gets its causes ranked and
// evidence: sentences made of the spans, block requests and server reports that lie in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/timeline.h"

namespace forktail
{

struct EpisodeCause {
	Cause cause;
	uint64_t time_ns; // over the episode's requests
	double share;	  // of the episode's requests' time, 0..1
};

struct Episode {
	uint64_t start_ns = 0; // CLOCK_MONOTONIC: the first request's intended send
	uint64_t end_ns = 0;
	uint64_t requests = 0;
	uint64_t worst_ns = 0;
	uint64_t time_ns = 0;		  // sum of its requests' latencies
	std::vector<EpisodeCause> causes; // largest first
	std::vector<std::string> evidence;
};

// Requests closer than this are one episode.
constexpr uint64_t kEpisodeGapNs = 1'000'000;

// Groups blame->slow, sets their `episode`, and returns the episodes by start.
std::vector<Episode> FindEpisodes(Blame *blame);

// At most `limit` sentences for an episode, the most telling first. `thread` is the serving thread's index
// in run.threads, or -1.
std::vector<std::string> EvidenceFor(const Run &run, const Timeline *timeline, const Episode &episode,
				     size_t limit);

} // namespace forktail
