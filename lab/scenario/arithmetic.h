// SPDX-License-Identifier: MIT
// Arithmetic in scenarios' templates and tables' formulas: a wrapper around muparser
// (https://beltoforion.de/en/muparser/features.php): + - * / ^ ?: min max sqrt log2 ..., and floor and ceil,
// which muparser lacks.
#pragma once

#include <map>
#include <string>

namespace forktail::lab
{

// False: *message is muparser's, "Unexpected token "x" found at position 3.". The result may be infinite or
// NaN. Names are letters, digits and _.
bool Calculate(const std::string &expression, std::map<std::string, double> names, double *result,
	       std::string *message);

} // namespace forktail::lab
