// SPDX-License-Identifier: MIT
// Requests that went through a proxy: what each was spent on, hop by hop.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "blamed_requests.h"
#include "context.h"
#include "head_of_line.h"
#include "hop_shares.h"

namespace forktail::analysis
{

// Of each worker: what one request was spent on, and what is kept for the next one.
struct Spending {
	Spent spent;
	Spent own; // of another one on the way
	Held held;
};

// Finds where requests may go on to; servers are known.
void FindWays(const std::vector<Timeline> &timelines, Context *context);
// Keeps those ways that requests of the window took.
void NoteWays(Context *context);
// Finds out what passed on them, from the timelines as they are now.
void BuildRoutes(Context *context);
// Finds who was in front of whom, in the window.
void FindInFront(Context *context);
// Adds request i up into scratch->spent, whose former content goes.
void Spend(const Context &context, const Through &through, size_t i, Spending *scratch);
// Which requests are blamed: those of threshold_ns or more, and those that take, without some stall, as long
// as floor_ns says.
struct Matter {
	uint64_t threshold_ns;
	StallTimes floor_ns;

	uint64_t least_ns() const
	{
		return std::min(threshold_ns, *std::min_element(floor_ns.begin(), floor_ns.end()));
	}
};
// Blames it, if it is one of those.
void BlameThrough(const Context &context, const Through &through, size_t i, const Matter &matter,
		  Spending *scratch, Sheet *sheet);

} // namespace forktail::analysis
