// SPDX-License-Identifier: MIT
// Which tables there are; schema.cc has their columns, and the functions that fill them name the values in
// the same order.
#pragma once

#include <cstddef>
#include <vector>

#include "table.h"

namespace forktail::analysis::exports
{

// Raised when columns are no longer only added to: in a Parquet file's metadata, and in a data set's
// _forktail.json.
constexpr int kTablesSchema = 1;

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

// In the order of TableId.
const std::vector<TableKind> &Tables();

} // namespace forktail::analysis::exports
