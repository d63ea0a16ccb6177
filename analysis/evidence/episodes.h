// SPDX-License-Identifier: MIT
// Episodes: slow requests that overlap in time form one episode. Each episode has its causes ranked and
// evidence: sentences made from the spans, block requests and server reports in its time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "activity.h"
#include "analysis/blame/blame.h"
#include "analysis/run/run.h"
#include "analysis/timeline/timeline.h"
#include "own_code.h"

namespace forktail::analysis
{

struct EpisodeCause {
	Cause cause;
	uint16_t hop;		// where most of it was spent, or kNoHop
	uint64_t time_ns;	// over the episode's requests
	double share;		// of the episode's requests' time, 0..1
	uint64_t thread_ns = 0; // of the serving thread in [since_ns, end_ns]; 0 for causes outside it
};

struct EpisodeHop {
	uint16_t hop;
	uint64_t time_ns; // over the episode's requests
	double share;	  // of the episode's requests' time, 0..1
};

// Sums over an episode's requests whose replies have known arrival times.
struct EpisodeAnswers {
	uint64_t known = 0;
	uint64_t unread_ns = 0; // at the client, summed over them
	uint64_t longest_unread_ns = 0;
	OnTheWay way = {}; // summed over them
};

struct Episode {
	uint64_t start_ns = 0; // CLOCK_MONOTONIC: the first request was due
	uint64_t end_ns = 0;
	uint64_t since_ns = 0; // its causes are in [since_ns, end_ns]
	uint64_t requests = 0;
	uint64_t worst_ns = 0;
	uint64_t time_ns = 0;		  // sum of its requests' latencies
	std::vector<EpisodeCause> causes; // largest first
	std::vector<EpisodeHop> hops;	  // largest first
	EpisodeAnswers answers;
	std::vector<std::string> evidence;
	std::vector<Cause> evidence_of; // the causes of the first of these sentences, in the same order
	OwnCode own_code;		// of the thread that served its worst request, in [since_ns, end_ns]
};

// The event, code or process behind a cause, over all episodes with evidence (culprit.h).
struct Culprit {
	std::string clause; // "fork() for BGREWRITEAOF took 43.7 ms"; "" if unknown
	std::string advice; // a sentence; "" for most
};
using Culprits = std::map<Cause, Culprit>;

// Requests with a smaller gap belong to one episode.
constexpr uint64_t kEpisodeGapNs = 1'000'000;

// Groups blame->slow, sets their `episode`, and returns the episodes by start.
std::vector<Episode> FindEpisodes(Blame *blame);

// Fills `evidence` and `own_code` of the `episodes_limit` episodes with the most time: at most `limit`
// sentences each, the largest cause first. `timelines` and `clients`: as for BlameRun; `activities`: per CPU
// sample; `cover`: loads an interval of the run into all of these, if only a stretch is in memory. `culprits`
// has the causes whose culprit is wanted, and is filled; it may be null.
void FindEvidence(const Run &run, const std::vector<Timeline> &timelines, const Blame &blame,
		  const Activities &activities, size_t limit, size_t episodes_limit,
		  std::vector<Episode> *episodes, const Clients &clients = {}, const Cover &cover = {},
		  Culprits *culprits = nullptr);

// Indices of the episodes with the most time, at most `limit`, largest first.
std::vector<uint32_t> WorstEpisodes(const std::vector<Episode> &episodes, size_t limit);

} // namespace forktail::analysis
