// SPDX-License-Identifier: MIT
// All formats that a run can be exported to; docs/reference/exports-and-sql.md has what each holds and what opens it.
#pragma once

#include <vector>

#include "analysis/exports/export.h"

namespace forktail::analysis::exports
{

// In the order in which help names them.
const std::vector<ExportFormat> &ExportFormats();

} // namespace forktail::analysis::exports
