// SPDX-License-Identifier: MIT
// The whole explanation as text: `forktail explain --all`. screen.h is the default, shorter output.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

constexpr size_t kTextEpisodes = 5;

// `episodes`: print at most this many of the worst.
std::string ExplainText(const Explanation &e, const Style &style, size_t episodes = kTextEpisodes);

} // namespace forktail::analysis
