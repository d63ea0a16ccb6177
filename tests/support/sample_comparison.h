// SPDX-License-Identifier: MIT
// A comparison made by hand, for tests of what shows comparisons: B's forks are longer, one cause is new,
// bounds are missing or infinite, and names are hostile.
#pragma once

#include "analysis/compare/compare.h"

namespace forktail::analysis
{

// `pairs` of runs; of one alone nothing is judged.
analysis::compare::Comparison SampleComparison(size_t pairs);

} // namespace forktail::analysis
