// SPDX-License-Identifier: MIT
// A run as tables, docs/exports.md: the one description of them that all sinks write, and the exporter that
// fills them.
#pragma once

#include <memory>

#include "export/exporter.h"
#include "table.h"

namespace forktail
{

// In the order of TableId (schema.h).
const std::vector<TableKind> &Tables();

// The same for the same recordings wherever they lie, and another for others: 16 hexadecimal digits.
std::string RunId(const Run &run);

std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink);

} // namespace forktail
