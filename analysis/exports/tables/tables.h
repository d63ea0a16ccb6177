// SPDX-License-Identifier: MIT
// A run as tables, docs/exports.md: the one description of them that all sinks write, and the exporter that
// fills them.
#pragma once

#include <memory>

#include "analysis/exports/exporter.h"
#include "table.h"

namespace forktail::analysis::exports
{

// Raised when columns are no longer only added to: in a Parquet file's metadata, and in a data set's
// _forktail.json.
constexpr int kTablesSchema = 1;

// In the order of TableId (schema.h).
const std::vector<TableKind> &Tables();

// The same for the same recordings wherever they lie, and another for others: 16 hexadecimal digits.
std::string RunId(const Run &run);

// Writes those of the tables that are named (none: all).
std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink,
				     const std::vector<std::string> &tables = {});

} // namespace forktail::analysis::exports
