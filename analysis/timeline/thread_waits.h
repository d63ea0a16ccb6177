// SPDX-License-Identifier: MIT
// Waiting for another thread: what a thread spent on that is what the other one did meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "timeline.h"

namespace forktail::analysis
{

// Timelines of any threads of a run, as their own records tell them, each built when it is first asked for.
class ThreadTimelines
{
public:
	explicit ThreadTimelines(const Run &run) : run_(&run) {}
	const Run &run() const { return *run_; }
	// `thread` is an index into Run::threads.
	const Timeline &Of(uint32_t thread);

private:
	const Run *run_;
	std::map<uint32_t, Timeline> built_;
};

// Gives the pieces of *timeline that lie in these intervals (in order, not overlapping, within it) their
// causes, and keeps whose they are.
void TakeForeign(const std::vector<Foreign> &intervals, Timeline *timeline);

// Finds what a serving thread waited for at other threads of its process: where it ran in circles for them
// (spins.h), and locks that they held (locks.h).
void ResolveOthers(ThreadTimelines *threads, Timeline *timeline);

} // namespace forktail::analysis
