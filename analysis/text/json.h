// SPDX-License-Identifier: MIT
// Writes the explanation as JSON; docs/reference/explain.md is its reference.
#pragma once

#include <cstdio>
#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// `requests`: include every slow request with its parts. False: writing failed, errno is set.
bool WriteExplainJson(const Explanation &e, FILE *file, bool requests = false);
// The same as a string. For a long run it needs more memory than everything else.
std::string ExplainJson(const Explanation &e, bool requests = false);

} // namespace forktail::analysis
