// SPDX-License-Identifier: MIT
// What a table's formula comes to at a point of a run, with the range over its repeats.
#pragma once

#include <optional>
#include <string>

#include "lab/run/results.h"

namespace forktail::lab
{

struct Value {
	std::optional<double> number; // none: a figure is missing, or the result is no number
	// With repeats, and if the formula is a single figure: its range.
	std::optional<double> least, most;
};

// A name is a figure of the point, else one of its variables, sizes or constants; after `base.` of the point
// `base`, which may be nullptr. False: it is no formula.
bool Evaluate(const std::string &formula, const Point &point, const Point *base, Value *value,
	      std::string *error);

} // namespace forktail::lab
