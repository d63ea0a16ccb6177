// SPDX-License-Identifier: MIT
// The default output of `forktail explain`: the answer and its basis on one screen.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

constexpr size_t kScreenLines = 40;

// At most kScreenLines lines, if style.columns is at least 80. `episodes`: print this many episodes instead
// of as many as fit.
std::string ExplainScreen(const Explanation &e, const Style &style, size_t episodes = 0);

// "1  +18.745 s  49.3 ms  453 requests, worst 39.0 ms: fork 74 %, run-queue 14 %", without line breaks.
std::string EpisodeHead(const Explanation &e, uint32_t index, size_t number);

} // namespace forktail::analysis
