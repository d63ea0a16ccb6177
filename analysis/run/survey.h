// SPDX-License-Identifier: MIT
// What must be known of all that threads did before a stretch of it can be indexed.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/run.h"

namespace forktail::analysis
{

// Finds threads without a thread record, the ends of open accounts, and the number of impossible records:
// what IndexRun finds if everything is loaded at once.
class Survey
{
public:
	// Of the threads with a thread record.
	explicit Survey(const Run &run);
	// Adds a block's records, given as spans and tallies of an otherwise empty run.
	void Add(Run *block);
	// Tally windows that are longer than usual, by start. A stretch may need a larger margin because of
	// them.
	struct Wide {
		uint64_t start_ns, end_ns;
	};
	std::vector<Wide> WideWindows();
	// Writes the results to the run; `dropped`: further impossible records.
	void Finish(uint64_t dropped, Run *run);

private:
	void Note(uint32_t tid, uint64_t start_ns, uint64_t end_ns, bool closes);

	std::vector<Thread> announced_;
	ThreadFinder finder_;
	std::vector<uint64_t> last_; // per thread with a record: the end of its last record
	std::unordered_map<uint32_t, size_t> made_by_tid_;
	std::vector<Thread> made_;
	std::vector<Wide> wide_;
	uint64_t dropped_ = 0;
};

} // namespace forktail::analysis
