// SPDX-License-Identifier: MIT
// The table of hops: the processes that requests passed, and the time at each.
#pragma once

#include <cstdint>
#include <vector>

#include "context.h"

namespace forktail::analysis
{

// The hop of a timeline. Timelines of one thread share a hop.
uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index);
// The hop's row, which is added if missing.
HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows);
// Adds the number of requests of the run that passed a hop.
void CountServed(uint16_t hop, uint64_t requests, Blame *blame);
// The same, by server and by path of the context.
void CountServed(const Context &context, const std::vector<uint64_t> &by_server,
		 const std::vector<uint64_t> &by_way, Blame *blame);

} // namespace forktail::analysis
