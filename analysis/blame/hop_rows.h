// SPDX-License-Identifier: MIT
// The table of hops: the processes that requests came by, and what passed at each.
#pragma once

#include <cstdint>
#include <vector>

#include "context.h"

namespace forktail::analysis
{

// The hop that a timeline is: those of one thread are one.
uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index);
// The hop's row, which is made if there is none.
HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows);
// How many requests of the run came by each.
void CountServed(uint16_t hop, uint64_t requests, Blame *blame);
// The same, by server and by way as the context has them.
void CountServed(const Context &context, const std::vector<uint64_t> &by_server,
		 const std::vector<uint64_t> &by_way, Blame *blame);

} // namespace forktail::analysis
