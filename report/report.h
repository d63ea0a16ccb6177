// SPDX-License-Identifier: MIT
// The report: one self-contained HTML page of a run.
#pragma once

#include <string>

#include "analysis/output/explain.h"

namespace forktail
{

// Writes the page to `path` (replacing it). False: *error is one sentence for the user.
bool WriteReport(const Explanation &explanation, const std::string &path, std::string *error);

} // namespace forktail
