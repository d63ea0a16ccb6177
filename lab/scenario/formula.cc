// SPDX-License-Identifier: MIT
// Formulas; see formula.h. muparser's own names can't hold dots, so it sees v0, v1 ... in their place.
#include "lab/formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <muParser.h>

namespace forktail
{
namespace
{

const std::string kRow = "{row}", kBase = "base.";

bool IsDigit(char c)
{
	return isdigit(static_cast<unsigned char>(c));
}

bool IsNamePart(char c)
{
	return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

size_t EndOfNumber(const std::string &text, size_t at)
{
	while (at < text.size() && (IsDigit(text[at]) || text[at] == '.'))
		at++;
	if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
		size_t digit = at + 1;
		if (digit < text.size() && (text[digit] == '+' || text[digit] == '-'))
			digit++;
		if (digit < text.size() && IsDigit(text[digit]))
			for (at = digit; at < text.size() && IsDigit(text[at]);)
				at++;
	}
	return at;
}

size_t EndOfName(const std::string &text, size_t at)
{
	while (at < text.size())
		if (IsNamePart(text[at]))
			at++;
		else if (text.compare(at, kRow.size(), kRow) == 0)
			at += kRow.size();
		else
			break;
	return at;
}

// A formula with its names taken out.
struct Parts {
	std::string arithmetic; // "v0 / v1"
	std::vector<std::string> names;
};

Parts TakeApart(const std::string &formula)
{
	Parts parts;
	for (size_t at = 0; at < formula.size();) {
		size_t end = at + 1;
		if (IsDigit(formula[at]) || formula[at] == '.') {
			end = EndOfNumber(formula, at);
		} else if (isalpha(static_cast<unsigned char>(formula[at])) ||
			   formula.compare(at, kRow.size(), kRow) == 0) {
			end = EndOfName(formula, at);
			size_t next = std::min(formula.find_first_not_of(' ', end), formula.size());
			if (formula[next] == '(') { // a function; muparser wants no space here
				parts.arithmetic += formula.substr(at, end - at);
				at = next;
				continue;
			}
			std::string name = formula.substr(at, end - at);
			auto known = std::find(parts.names.begin(), parts.names.end(), name);
			parts.arithmetic += "v" + std::to_string(known - parts.names.begin());
			if (known == parts.names.end())
				parts.names.push_back(name);
			at = end;
			continue;
		}
		parts.arithmetic += formula.substr(at, end - at);
		at = end;
	}
	return parts;
}

// Unexpected variable "v1" found at position 3. -> unexpected variable "run.p99": in the words that were
// typed.
std::string Reason(const mu::Parser::exception_type &e, const Parts &parts)
{
	std::string reason = e.GetMsg();
	for (const char *place : {" found at position", " at position"})
		reason = reason.substr(0, reason.find(place));
	for (size_t i = 0; i < parts.names.size(); i++) {
		std::string stand_in = "\"v" + std::to_string(i);
		size_t at = reason.find(stand_in);
		if (at != std::string::npos && !IsDigit(reason.c_str()[at + stand_in.size()]))
			reason.replace(at + 1, stand_in.size() - 1, parts.names[i]);
	}
	while (!reason.empty() && (reason.back() == '.' || reason.back() == ' '))
		reason.pop_back();
	if (!reason.empty())
		reason[0] = static_cast<char>(tolower(static_cast<unsigned char>(reason[0])));
	return reason;
}

bool Calculate(const std::string &formula, const Parts &parts, std::vector<double> numbers, double *result,
	       std::string *error)
{
	try {
		mu::Parser parser;
		// Sizes of tables are powers of two: 2^ceil(log2(keys)).
		parser.DefineFun(
		    "ceil", +[](double x) { return std::ceil(x); });
		parser.DefineFun(
		    "floor", +[](double x) { return std::floor(x); });
		for (size_t i = 0; i < numbers.size(); i++)
			parser.DefineVar("v" + std::to_string(i), &numbers[i]);
		parser.SetExpr(parts.arithmetic);
		*result = parser.Eval();
		return true;
	} catch (const mu::Parser::exception_type &e) {
		*error = "\"" + formula + "\" is no formula: " + Reason(e, parts);
		return false;
	}
}

// The point that a name means, and the name there.
const Point *Owner(const Point &point, const Point *base, std::string *name)
{
	if (name->rfind(kBase, 0) != 0)
		return &point;
	name->erase(0, kBase.size());
	return base;
}

std::optional<double> Look(const std::map<std::string, double> &numbers, const std::string &name)
{
	auto found = numbers.find(name);
	return found == numbers.end() ? std::optional<double>() : found->second;
}

std::optional<double> Figure(const Point &point, const Point *base, std::string name)
{
	const Point *owner = Owner(point, base, &name);
	if (!owner)
		return {};
	if (std::optional<double> number = Look(owner->numbers, name))
		return number;
	auto value = owner->values.find(name);
	if (value == owner->values.end())
		return {};
	const std::string &text = value->second;
	double number = 0;
	auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
	if (failed != std::errc() || end != text.data() + text.size())
		return {};
	return number;
}

} // namespace

bool CheckFormula(const std::string &formula, std::string *error)
{
	Parts parts = TakeApart(formula);
	double unused = 0;
	return Calculate(formula, parts, std::vector<double>(parts.names.size(), 1), &unused, error);
}

std::vector<std::string> NamesIn(const std::string &formula)
{
	return TakeApart(formula).names;
}

std::string WithRow(const std::string &text, const std::string &row)
{
	std::string result = text;
	const std::string name = FigureName(row);
	for (size_t at = 0; (at = result.find(kRow, at)) != std::string::npos; at += name.size())
		result.replace(at, kRow.size(), name);
	return result;
}

bool Evaluate(const std::string &formula, const Point &point, const Point *base, Value *value,
	      std::string *error)
{
	*value = {};
	Parts parts = TakeApart(formula);
	std::vector<double> numbers;
	bool missing = false;
	for (const std::string &name : parts.names) {
		std::optional<double> number = Figure(point, base, name);
		missing = missing || !number;
		numbers.push_back(number.value_or(1));
	}
	double result = 0;
	if (!Calculate(formula, parts, numbers, &result, error))
		return false;
	if (missing || !std::isfinite(result))
		return true;
	value->number = result;
	if (parts.arithmetic == "v0") {
		std::string name = parts.names[0];
		const Point *owner = Owner(point, base, &name);
		if (owner->repeats > 1) {
			value->least = Look(owner->least, name);
			value->most = Look(owner->most, name);
		}
	}
	return true;
}

} // namespace forktail
