// SPDX-License-Identifier: MIT
// What happened on a server's thread and around it in one interval, gathered so that sentences can be made
// of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "analysis/run/run.h"
#include "analysis/timeline/thread_timelines.h"
#include "analysis/timeline/timeline.h"
#include "episodes.h"

namespace forktail::analysis
{

// One cause's share of the interval.
struct Seen {
	uint64_t ns = 0;	 // of spans, clipped to the interval
	uint64_t spans = 0;	 // how many
	uint32_t last = kNoSpan; // counted
	uint32_t longest = kNoSpan;
	uint64_t longest_ns = 0; // of it in the interval
	double tallied = 0;	 // short ones, about: a window that is only partly inside counts in part
	double tallied_ns = 0;
};

// A thread that held the CPU while the server's waited for it.
struct Holder {
	uint64_t ns = 0;
	uint32_t span = kNoSpan; // one of those waits
};

// Rare frames of the whole run that sentences look for, by thread and start.
struct Landmarks {
	std::vector<uint32_t> forks, fsyncs;
};

struct Scene {
	const Run &run;
	const Timeline &timeline;
	const Thread &thread; // the timeline's
	const Landmarks &landmarks;
	uint64_t from_ns = 0;
	uint64_t to_ns = 0;
	std::array<Seen, kTimelineCauses> seen = {};
	std::map<uint32_t, Holder> holders = {}; // by tid
	OwnCode own_code = {};			 // of the thread
	const Scene *client = nullptr; // the worst request's load thread in that interval, if recorded
	const Activities *activities = nullptr;		  // of the run's samples
	const EpisodeAnswers *answers = nullptr;	  // of the episode
	const std::vector<Timeline> *timelines = nullptr; // of all hops
	ThreadTimelines *threads = nullptr;		  // of any thread
};

// Fills seen and holders.
void Gather(Scene *scene);
// What the scene's thread's own code was in an interval.
OwnCode OwnCodeIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns);

} // namespace forktail::analysis
