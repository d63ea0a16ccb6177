// SPDX-License-Identifier: MIT
// Names of figures hold dots, which muparser's can't: it sees v0, v1 ... in their place, and what it
// complains of is said in the names that were typed.
#include "formula.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "arithmetic.h"

namespace forktail::lab
{
namespace
{

const std::string kRow = "{row}";

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
std::string Reason(std::string reason, const Parts &parts)
{
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

} // namespace

bool CheckFormula(const std::string &formula, std::string *error)
{
	std::optional<double> unused;
	return WorkOut(
	    formula, [](const std::string &) { return 1; }, &unused, error);
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

std::string FigureName(const std::string &text)
{
	std::string name = text;
	for (char &c : name)
		if (!isalnum(static_cast<unsigned char>(c)))
			c = '_';
	return name;
}

bool WorkOut(const std::string &formula,
	     const std::function<std::optional<double>(const std::string &)> &figure,
	     std::optional<double> *result, std::string *error)
{
	Parts parts = TakeApart(formula);
	std::map<std::string, double> numbers;
	bool missing = false;
	for (size_t i = 0; i < parts.names.size(); i++) {
		std::optional<double> number = figure(parts.names[i]);
		missing = missing || !number;
		numbers["v" + std::to_string(i)] = number.value_or(1);
	}
	double number = 0;
	std::string message;
	if (!Calculate(parts.arithmetic, numbers, &number, &message)) {
		*error = "\"" + formula + "\" is not a formula: " + Reason(message, parts);
		return false;
	}
	*result = missing || !std::isfinite(number) ? std::optional<double>() : number;
	return true;
}

} // namespace forktail::lab
