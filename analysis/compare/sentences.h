// SPDX-License-Identifier: MIT
// Differences in words: what text, Markdown and the page all say.
#pragma once

#include <string>

#include "comparison.h"

namespace forktail::analysis::compare
{

std::string ValueText(Unit unit, double value);	  // "12.4 ms", "1.10 GB"
std::string ChangeText(Unit unit, double change); // the same with its sign: "+12.4 ms"
// " [+9.8 ms, +15.1 ms]"; "" if it isn't known.
std::string IntervalText(const Difference &d);
// "+12.4 %"; "" if it isn't known.
std::string RatioText(const Difference &d);

// Fills sentences, changes and reason.
void PutIntoWords(Comparison *c);

} // namespace forktail::analysis::compare
