// SPDX-License-Identifier: MIT
// The explanation as JSON; docs/reference/explain.md is its reference.
#pragma once

#include <cstdio>
#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// `requests`: with every slow request and its parts. False: it could not be written, and errno says why.
bool WriteExplainJson(const Explanation &e, FILE *file, bool requests = false);
// The same as a string, which of a long run takes more memory than all else.
std::string ExplainJson(const Explanation &e, bool requests = false);

} // namespace forktail::analysis
