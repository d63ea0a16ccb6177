// SPDX-License-Identifier: MIT
// The CPU time of recorded threads in a period, by the kernel's account, with the interrupts on top of them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"

namespace forktail::analysis
{

class CpuTimes
{
public:
	explicit CpuTimes(const TimeSpan &period) : period_(period) {}
	// Adds what began in [from_ns, to_ns), which must be loaded.
	void Add(const Run &run, uint64_t from_ns, uint64_t to_ns);
	// Per Run::threads.
	uint64_t Of(size_t thread) const { return thread < by_thread_.size() ? by_thread_[thread] : 0; }

private:
	// The part in the period of an amount spread evenly over [start_ns, end_ns].
	uint64_t Within(uint64_t amount_ns, uint64_t start_ns, uint64_t end_ns) const;

	TimeSpan period_;
	std::vector<uint64_t> by_thread_;
};

} // namespace forktail::analysis
