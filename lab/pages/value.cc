// SPDX-License-Identifier: MIT
// A name is looked up as a figure, then among the point's values; a value that is not a number counts as
// missing.
#include "value.h"

#include <charconv>
#include <map>

#include "lab/scenario/formula.h"

namespace forktail::lab
{
namespace
{

const std::string kBase = "base.";

// The point of a name, and the name without "base.".
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

bool Evaluate(const std::string &formula, const Point &point, const Point *base, Value *value,
	      std::string *error)
{
	*value = {};
	if (!WorkOut(
		formula, [&](const std::string &name) { return Figure(point, base, name); }, &value->number,
		error))
		return false;
	std::vector<std::string> names = NamesIn(formula);
	if (!value->number || names != std::vector{formula})
		return true;
	std::string name = formula;
	const Point *owner = Owner(point, base, &name);
	if (owner->repeats > 1) {
		value->least = Look(owner->least, name);
		value->most = Look(owner->most, name);
	}
	return true;
}

} // namespace forktail::lab
