// SPDX-License-Identifier: MIT
// Differences as sentences, for text, Markdown and the page.
#pragma once

#include <string>

#include "comparison.h"

namespace forktail::analysis::compare
{

std::string ValueText(Unit unit, double value);	  // "12.4 ms", "1.10 GB"
std::string ChangeText(Unit unit, double change); // the same with its sign: "+12.4 ms"
// " [+9.8 ms, +15.1 ms]"; "" if unknown.
std::string IntervalText(const Difference &d);
// "+12.4 %"; "" if unknown.
std::string RatioText(const Difference &d);

// Fills the sentences, changes and reason.
void PutIntoWords(Comparison *c);

} // namespace forktail::analysis::compare
