// SPDX-License-Identifier: MIT
// Tables as comma-separated values: a file for each in a directory, by RFC 4180.
#pragma once

#include <memory>
#include <string>

#include "table.h"

namespace forktail::analysis::exports
{

// Into a directory that is there.
std::unique_ptr<TableSink> MakeCsv(const std::string &directory);

} // namespace forktail::analysis::exports
