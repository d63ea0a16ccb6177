// SPDX-License-Identifier: MIT
// `forktail explain --format`: a line for a script, with numbers of the explanation in it.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// Whether every placeholder is one that there is. False: *error is one sentence.
bool CheckFormat(const std::string &format, std::string *error);
// A format that has been checked, with its values; docs/reference/explain.md lists what may be asked for.
std::string FormatLine(const Explanation &e, const std::string &format);

} // namespace forktail::analysis
