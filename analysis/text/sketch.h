// SPDX-License-Identifier: MIT
// Draws latency over the time of a run with characters: the longest latency per column on a log scale, slow
// ones in colour, and the positions of the worst episodes below.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

// `rows` lines of latency, one line with the positions of the episodes in `worst` (indices), and one time
// axis. Empty if no request was answered.
std::vector<std::string> LatencySketch(const Explanation &e, const Style &style, size_t rows,
				       const std::vector<uint32_t> &worst);

} // namespace forktail::analysis
