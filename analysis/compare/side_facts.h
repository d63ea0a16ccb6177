// SPDX-License-Identifier: MIT
// The facts that should be equal on both sides and are not.
#pragma once

#include "comparison.h"

namespace forktail::analysis::compare
{

std::vector<FactChange> FactChanges(const ComparedSide &a, const ComparedSide &b);

} // namespace forktail::analysis::compare
