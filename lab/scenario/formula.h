// SPDX-License-Identifier: MIT
// The value of a table's column: arithmetic with a point's figures, "run.SET.rps / base.run.SET.rps". The
// caller provides the figures, so that a scenario can be checked before it runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace forktail::lab
{

// False: invalid formula; *error is one sentence. {row} is allowed.
bool CheckFormula(const std::string &formula, std::string *error);

// The figures and variables in the formula, each once, as written: "run.{row}.rps", "base.run.rps".
std::vector<std::string> NamesIn(const std::string &formula);

// Replaces {row} by the row's name in figures.
std::string WithRow(const std::string &text, const std::string &row);

// "READ-MODIFY-WRITE" -> "READ_MODIFY_WRITE".
std::string FigureName(const std::string &text);

// Evaluates the formula with these figures; no value if one is missing or the result is not a number. False:
// invalid formula.
bool WorkOut(const std::string &formula,
	     const std::function<std::optional<double>(const std::string &)> &figure,
	     std::optional<double> *result, std::string *error);

} // namespace forktail::lab
