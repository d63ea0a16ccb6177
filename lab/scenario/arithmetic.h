// SPDX-License-Identifier: MIT
// Arithmetic that scenarios may write, in templates and in tables' formulas: one wrapper around muparser, so
// that both have the same functions (https://beltoforion.de/en/muparser/features.php): + - * / ^ ?: min max
// sqrt log2 ..., and floor and ceil, which it lacks.
#pragma once

#include <map>
#include <string>

namespace forktail::lab
{

// False: *message is muparser's, "Unexpected token "x" found at position 3.". The result may be infinite or
// no number. Names are letters, digits and _.
bool Calculate(const std::string &expression, std::map<std::string, double> names, double *result,
	       std::string *message);

} // namespace forktail::lab
