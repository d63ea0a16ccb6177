// SPDX-License-Identifier: MIT
// Tables as Parquet files, one per table in a directory: zstd, row groups of a million rows, ordered by time.
#pragma once

#include <memory>
#include <string>

#include "analysis/exports.h"

namespace forktail::analysis::exports
{

// Writes into an existing directory.
std::unique_ptr<TableSink> MakeParquet(const std::string &directory);

} // namespace forktail::analysis::exports
