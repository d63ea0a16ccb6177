// SPDX-License-Identifier: MIT
// What a column of a table prints: arithmetic with a point's figures, "run.SET.rps / base.run.SET.rps".
// Operators and functions are muparser's (https://beltoforion.de/en/muparser/features.php): + - * / ^ ?: min
// max sqrt log2 ...; floor and ceil are ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/results.h"

namespace forktail
{

// False: *error is one sentence that says why it is no formula. {row} may stand in it.
bool CheckFormula(const std::string &formula, std::string *error);

// The figures and variables it names, each once, as written: "run.{row}.rps", "base.run.rps".
std::vector<std::string> NamesIn(const std::string &formula);

// The text with {row} replaced by what figures call the row.
std::string WithRow(const std::string &text, const std::string &row);

// A point, the one that `base.` means (may be nullptr), and what comes out.
struct Value {
	std::optional<double> number; // none: a figure is missing, or the result is no number
	// With repeats, and if the formula is a single figure: its range.
	std::optional<double> least, most;
};

// A name is a figure of the point, else one of its variables, sizes or constants. False: it is no formula.
bool Evaluate(const std::string &formula, const Point &point, const Point *base, Value *value,
	      std::string *error);

} // namespace forktail
