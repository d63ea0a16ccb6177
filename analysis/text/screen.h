// SPDX-License-Identifier: MIT
// What `forktail explain` shows if it is not asked for more: the answer, and what it rests on, on one screen.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

constexpr size_t kScreenLines = 40;

// No more than that many lines of `style.columns` if those are 80 or more, whatever the run;
// `episodes`: that many instead of as many as there is room for.
std::string ExplainScreen(const Explanation &e, const Style &style, size_t episodes = 0);

// "1  +18.745 s  49.3 ms  453 requests, worst 39.0 ms: fork 74 %, run-queue 14 %": not broken into lines.
std::string EpisodeHead(const Explanation &e, uint32_t index, size_t number);

} // namespace forktail::analysis
