// SPDX-License-Identifier: MIT
// The slowest clients or commands as a table.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

enum class GroupBy { Client, Command };

// False: *error is one sentence.
bool GroupTable(const Explanation &e, const Style &style, GroupBy by, std::string *text, std::string *error);

} // namespace forktail::analysis
