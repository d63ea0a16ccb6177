// SPDX-License-Identifier: MIT
// The list of tables. schema.cc has their columns; the functions that fill them give the values in the same
// order.
#pragma once

#include <cstddef>
#include <vector>

#include "table.h"

namespace forktail::analysis::exports
{

// Raised if a column is changed or removed. It is in a Parquet file's metadata and in a data set's
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
	kIterations,
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
	kMarks,
	kTables
};

// In the order of TableId.
const std::vector<TableKind> &Tables();

} // namespace forktail::analysis::exports
