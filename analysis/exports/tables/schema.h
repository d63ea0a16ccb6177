// SPDX-License-Identifier: MIT
// Which tables there are; schema.cc has their columns, and the functions that fill them name the values in
// the same order.
#pragma once

#include <cstddef>

namespace forktail::analysis::exports
{

enum TableId : size_t {
	kRuns,
	kRequests,
	kSlow,
	kParts,
	kCausesTable,
	kSpans,
	kTallies,
	kTurns,
	kEpisodes,
	kEpisodeCauses,
	kEvidence,
	kMetrics,
	kSamples,
	kStacks,
	kDisk,
	kConnections,
	kThreads,
	kHops,
	kDrops,
	kTables
};

} // namespace forktail::analysis::exports
