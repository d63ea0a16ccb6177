// SPDX-License-Identifier: MIT
// A run as tables (docs/reference/exports-and-sql.md): the exporter that fills them, independent of their
// file format.
#pragma once

#include <memory>

#include "analysis/exports/exporter.h"
#include "table.h"

namespace forktail::analysis::exports
{

// 16 hexadecimal digits: the same for the same recordings wherever they are stored, and different for others.
std::string RunId(const Run &run);

// Writes the named tables (empty: all).
std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink,
				     const std::vector<std::string> &tables = {});

} // namespace forktail::analysis::exports
