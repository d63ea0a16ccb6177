// SPDX-License-Identifier: MIT
// The report: a self-contained HTML page of one run, or of a comparison of two sides.
#pragma once

#include <string>

#include "analysis/compare.h"
#include "analysis/explain.h"

namespace forktail::analysis::report
{

// Writes the page to `path` (replacing it). Reads the run once more for single requests and spans. False:
// *error is one sentence for the user.
bool WriteReport(const Explanation &explanation, Reading *reading, const std::string &path,
		 std::string *error);
bool WriteComparePage(const compare::Comparison &comparison, const std::string &path, std::string *error);

} // namespace forktail::analysis::report
