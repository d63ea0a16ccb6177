// SPDX-License-Identifier: MIT
// What has to be known of all that threads did before a stretch of it can be put in order.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/run/run.h"
#include "analysis/run/thread_finder.h"

namespace forktail::analysis
{

// Finds threads that nobody announced, when accounts that were left open end, and how many records make no
// sense: what IndexRun finds when all is there at once.
class Survey
{
public:
	// Of the threads that were announced.
	explicit Survey(const Run &run);
	// A block's records, in spans and tallies of an otherwise empty run.
	void Add(Run *block);
	// Windows of tallies that are longer than usual, so that a stretch may need more around it, by start.
	struct Wide {
		uint64_t start_ns, end_ns;
	};
	std::vector<Wide> WideWindows();
	// Into the run that it is of; `dropped`: further records that make no sense.
	void Finish(uint64_t dropped, Run *run);

private:
	void Note(uint32_t tid, uint64_t start_ns, uint64_t end_ns, bool closes);

	std::vector<Thread> announced_;
	ThreadFinder finder_;
	std::vector<uint64_t> last_; // per announced thread, what any record of it reaches to
	std::unordered_map<uint32_t, size_t> made_by_tid_;
	std::vector<Thread> made_;
	std::vector<Wide> wide_;
	uint64_t dropped_ = 0;
};

} // namespace forktail::analysis
