// SPDX-License-Identifier: MIT
// Requests that went through a proxy: what each was spent on, hop by hop.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "context.h"
#include "held.h"
#include "sheet.h"
#include "spent.h"

namespace forktail
{

// Of each worker: what one request was spent on, and what is kept for the next one.
struct Spending {
	Spent spent;
	Held held;
};

// Finds the ways through a proxy that requests took, without their backlogs; servers are known.
void FindWays(const std::vector<Timeline> &timelines, Context *context);
// Adds request i up into scratch->spent, whose former content goes.
void Spend(const Context &context, const Through &through, size_t i, Spending *scratch);
// Blames it.
void BlameThrough(const Context &context, const Through &through, size_t i, Spending *scratch, Sheet *sheet);

} // namespace forktail
