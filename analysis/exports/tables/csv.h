// SPDX-License-Identifier: MIT
// Tables as comma-separated values (RFC 4180): one file per table in a directory.
#pragma once

#include <memory>
#include <string>

#include "table.h"

namespace forktail::analysis::exports
{

// Writes into an existing directory.
std::unique_ptr<TableSink> MakeCsv(const std::string &directory, bool raw = false);

} // namespace forktail::analysis::exports
