// SPDX-License-Identifier: MIT
// A run as tables, docs/reference/exports-and-sql.md: the exporter that fills them, whatever they are written as.
#pragma once

#include <memory>

#include "analysis/exports/exporter.h"
#include "table.h"

namespace forktail::analysis::exports
{

// The same for the same recordings wherever they lie, and another for others: 16 hexadecimal digits.
std::string RunId(const Run &run);

// Writes those of the tables that are named (none: all).
std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink,
				     const std::vector<std::string> &tables = {});

} // namespace forktail::analysis::exports
