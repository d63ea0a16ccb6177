// SPDX-License-Identifier: MIT
// The look at all requests of a run, which finds those that are worth to be blamed exactly.
#pragma once

#include "context.h"
#include "percentile.h"
#include "whatif.h"

namespace forktail
{

struct FirstLook {
	LogHistogram calm; // lower bounds of what requests would be without any stall
	WithoutHistograms without;

	void Merge(const FirstLook &other);
};

// Looks at the window of the log that is in memory, adding to those of the workers. Through a proxy, where a
// look costs more, one request of `step` stands for all.
void LookAtWindow(const Context &context, uint64_t step, std::vector<FirstLook> *workers);
// How many of `count` requests one stands for there.
uint64_t StepThrough(uint64_t count);

} // namespace forktail
