// SPDX-License-Identifier: MIT
// All formats of exports. docs/reference/exports-and-sql.md has their contents and the tools that open them.
#pragma once

#include <vector>

#include "analysis/exports/export.h"

namespace forktail::analysis::exports
{

// In the order of the help.
const std::vector<ExportFormat> &ExportFormats();

} // namespace forktail::analysis::exports
