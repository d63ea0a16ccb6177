// SPDX-License-Identifier: MIT
// What was not the same on both sides, of what ought to be.
#pragma once

#include "comparison.h"

namespace forktail::analysis::compare
{

std::vector<FactChange> FactChanges(const ComparedSide &a, const ComparedSide &b);

} // namespace forktail::analysis::compare
