// SPDX-License-Identifier: MIT
// Tables as Parquet files, one for each in a directory: zstd, row groups of a million rows in the order of
// time.
#pragma once

#include <memory>
#include <string>

#include "analysis/exports/tables/table.h"

namespace forktail::analysis::exports
{

// Into a directory that is there.
std::unique_ptr<TableSink> MakeParquet(const std::string &directory);

} // namespace forktail::analysis::exports
