// SPDX-License-Identifier: MIT
// How many requests were due, answered and given up in each of many equal intervals of a run.
#pragma once

#include <cstdint>

#include "intervals.h"

namespace forktail::analysis
{

struct LoadCounts {
	uint64_t due = 0;		   // were due in it
	uint64_t answered = 0, failed = 0; // were answered, or failed, in it

	void Merge(const LoadCounts &other)
	{
		due += other.due;
		answered += other.answered;
		failed += other.failed;
	}
};

using LoadCurve = Intervals<LoadCounts>;

} // namespace forktail::analysis
