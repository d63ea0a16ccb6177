// SPDX-License-Identifier: MIT
// Figures of an explanation by name, for all who ask in words: `explain --format` and limits.
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

// "p99.9", "drops", "fork.total"; nothing: there is no such figure.
std::optional<NamedFigure> FindFigure(const Explanation &e, const std::string &name);
// "total" of a cause. One without time is a cause of no requests.
std::optional<NamedFigure> FindFigure(const Explanation &e, Cause cause, const std::string &name);

} // namespace forktail::analysis
