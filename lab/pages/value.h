// SPDX-License-Identifier: MIT
// The value of a table's formula at a point, with the range over its repeats.
#pragma once

#include <optional>
#include <string>

#include "lab/run/results.h"

namespace forktail::lab
{

struct Value {
	std::optional<double> number; // none: a figure is missing, or the result is not a number
	// With repeats, if the formula is a single figure: its range.
	std::optional<double> least, most;
};

// A name is a figure of the point, else a variable, size or constant; after `base.` of the point `base`,
// which may be nullptr. False: invalid formula.
bool Evaluate(const std::string &formula, const Point &point, const Point *base, Value *value,
	      std::string *error);

} // namespace forktail::lab
