// SPDX-License-Identifier: MIT
// Looks up figures of an explanation by name, for `explain --format` and for limits.
#pragma once

#include <optional>
#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

enum class FigureUnit : uint8_t { kNs, kCount, kShare /* 0 to 1 */, kPerSecond };

struct NamedFigure {
	FigureUnit unit;
	double value;
};

// "p99.9", "drops", "fork.total"; nothing for an unknown name.
std::optional<NamedFigure> FindFigure(const Explanation &e, const std::string &name);
// A figure of a cause, such as "total". It is zero for a cause that did not occur.
std::optional<NamedFigure> FindFigure(const Explanation &e, Cause cause, const std::string &name);

} // namespace forktail::analysis
