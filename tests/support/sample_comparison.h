// SPDX-License-Identifier: MIT
// A comparison made by hand, for tests of its output: B's forks are longer, one cause is new, bounds are
// missing or infinite, and names are hostile.
#pragma once

#include "analysis/compare.h"

namespace forktail::analysis
{

// `pairs` of runs. A single pair gets no verdict.
analysis::compare::Comparison SampleComparison(size_t pairs);

} // namespace forktail::analysis
