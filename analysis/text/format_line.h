// SPDX-License-Identifier: MIT
// `forktail explain --format`: one line for a script, with figures of the explanation.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// Whether every placeholder is known. False: *error is one sentence.
bool CheckFormat(const std::string &format, std::string *error);
// Fills in a checked format. docs/reference/explain.md lists the placeholders.
std::string FormatLine(const Explanation &e, const std::string &format);

} // namespace forktail::analysis
