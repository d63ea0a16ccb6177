// SPDX-License-Identifier: MIT
// The table of hops: the processes that requests came by, and what passed at each.
#pragma once

#include <cstdint>
#include <vector>

#include "context.h"

namespace forktail
{

// The hop that a timeline is: those of one thread are one.
uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index);
// How many requests of the run came by each, and what passed there over the slow ones.
void CountServed(uint16_t hop, uint64_t requests, Blame *blame);
void CountServed(const Context &context, Blame *blame);
void FillHops(Blame *blame);

} // namespace forktail
