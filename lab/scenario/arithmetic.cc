// SPDX-License-Identifier: MIT
// muparser reads variables through pointers, so the names are passed by value and live until it is done.
#include "arithmetic.h"

#include <cmath>
#include <muParser.h>

namespace forktail::lab
{

bool Calculate(const std::string &expression, std::map<std::string, double> names, double *result,
	       std::string *message)
{
	try {
		mu::Parser parser;
		// Sizes of hash tables are powers of two: 2^ceil(log2(keys)).
		parser.DefineFun(
		    "ceil", +[](double x) { return std::ceil(x); });
		parser.DefineFun(
		    "floor", +[](double x) { return std::floor(x); });
		for (auto &[name, number] : names)
			parser.DefineVar(name, &number);
		parser.SetExpr(expression);
		*result = parser.Eval();
		return true;
	} catch (const mu::Parser::exception_type &e) {
		*message = e.GetMsg();
		return false;
	}
}

} // namespace forktail::lab
