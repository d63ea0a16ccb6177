// SPDX-License-Identifier: MIT
// The explanation as text with everything that there is to say: `forktail explain --all`. screen.h is what
// is shown of it otherwise.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

constexpr size_t kTextEpisodes = 5;

// `episodes`: the worst ones, at most so many.
std::string ExplainText(const Explanation &e, const Style &style, size_t episodes = kTextEpisodes);

} // namespace forktail::analysis
