// SPDX-License-Identifier: MIT
// What a column of a table prints: arithmetic with a point's figures, "run.SET.rps / base.run.SET.rps". Whose
// figures they are is left to the caller, so that a scenario can be checked before there are any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace forktail::lab
{

// False: *error is one sentence that says why it is no formula. {row} may stand in it.
bool CheckFormula(const std::string &formula, std::string *error);

// The figures and variables it names, each once, as written: "run.{row}.rps", "base.run.rps".
std::vector<std::string> NamesIn(const std::string &formula);

// The text with {row} replaced by what figures call the row.
std::string WithRow(const std::string &text, const std::string &row);

// "READ-MODIFY-WRITE" -> "READ_MODIFY_WRITE".
std::string FigureName(const std::string &text);

// What the formula comes to when its names are these figures; nothing if one is missing or the result is no
// number. False: it is no formula.
bool WorkOut(const std::string &formula,
	     const std::function<std::optional<double>(const std::string &)> &figure,
	     std::optional<double> *result, std::string *error);

} // namespace forktail::lab
