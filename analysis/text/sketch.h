// SPDX-License-Identifier: MIT
// Latency over the time of a run, drawn with letters: the longest in each column on a log scale, what is slow
// in colour, and below it where the worst episodes are.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

// `rows` lines of latency, one that says where the episodes are that `worst` has the indices of, and one of
// time; none if nothing was answered.
std::vector<std::string> LatencySketch(const Explanation &e, const Style &style, size_t rows,
				       const std::vector<uint32_t> &worst);

} // namespace forktail::analysis
