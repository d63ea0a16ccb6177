// SPDX-License-Identifier: MIT
// Finds the thread of a thread id in a record.
#pragma once

#include <unordered_map>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// Finds the thread that a record belongs to. A tid can be reused after its thread has ended: the record
// belongs to the last account that began no later than it.
struct ThreadFinder {
	std::unordered_map<uint32_t, std::vector<uint32_t>> by_tid; // indices into threads, by start

	explicit ThreadFinder(const std::vector<Thread> &threads)
	{
		for (uint32_t i = 0; i < threads.size(); i++)
			by_tid[threads[i].tid].push_back(i);
	}
	// -1: no such thread.
	int64_t Find(const std::vector<Thread> &threads, uint32_t tid, uint64_t start_ns) const
	{
		auto found = by_tid.find(tid);
		if (found == by_tid.end())
			return -1;
		const std::vector<uint32_t> &list = found->second;
		uint32_t best = list.front();
		for (uint32_t i : list)
			if (threads[i].start_ns <= start_ns)
				best = i;
		return best;
	}
};

} // namespace forktail::analysis
