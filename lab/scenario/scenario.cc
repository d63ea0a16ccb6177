// SPDX-License-Identifier: MIT
// A scenario's points, scales and templates; see scenario.h. Reading and checking are in scenario_read.cc and
// scenario_check.cc.
#include "lab/scenario.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <muParser.h>

namespace forktail
{
namespace
{

constexpr double kLargestScale = 1000;

bool IsNumber(const std::string &text, double *number)
{
	auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
	return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// As words of a command line have it: whole if it is whole.
std::string NumberText(double number)
{
	char text[32];
	snprintf(text, sizeof text, "%.15g", number);
	return text;
}

// What stands between braces, if it isn't a mere name: arithmetic, rounded down.
bool Calculate(const std::string &formula, const Values &values, std::string *result, std::string *error)
{
	try {
		mu::Parser parser;
		std::map<std::string, double> numbers;
		for (const auto &[name, text] : values)
			if (double number; IsNumber(text, &number))
				numbers[name] = number;
		for (auto &[name, number] : numbers)
			parser.DefineVar(name, &number);
		parser.SetExpr(formula);
		double number = parser.Eval();
		if (!std::isfinite(number)) {
			*error = "{" + formula + "} is no number";
			return false;
		}
		*result = NumberText(std::floor(number));
		return true;
	} catch (const mu::Parser::exception_type &e) {
		*error = "{" + formula + "} can't be worked out: " + e.GetMsg();
		return false;
	}
}

} // namespace

bool ParseScale(const Scenario &scenario, const std::string &text, Scale *scale, std::string *error)
{
	auto named = scenario.scales.find(text);
	if (named != scenario.scales.end()) {
		*scale = {text, named->second};
		return true;
	}
	double factor = 0;
	if (IsNumber(text, &factor) && factor > 0 && factor <= kLargestScale) {
		*scale = {"", factor};
		return true;
	}
	*error = "a scale is a number above 0, up to 1000";
	for (const auto &[name, unused] : scenario.scales)
		*error += ", or " + name;
	*error += "; not \"" + text + "\"";
	return false;
}

std::vector<Values> PointsOf(const Scenario &scenario, const Scale &scale)
{
	Values first = scenario.constants;
	for (const Size &size : scenario.sizes)
		first[size.name] = NumberText(std::max(size.least, std::round(size.full * scale.factor)));
	std::vector<Values> points = {first};
	for (const Sweep &sweep : scenario.sweeps) {
		auto fewer = sweep.at.find(scale.name);
		const std::vector<std::string> &values =
		    fewer == sweep.at.end() ? sweep.values : fewer->second;
		std::vector<Values> more;
		for (const Values &point : points)
			for (const std::string &value : values) {
				more.push_back(point);
				more.back()[sweep.name] = value;
				size_t i = static_cast<size_t>(
				    std::find(sweep.values.begin(), sweep.values.end(), value) -
				    sweep.values.begin());
				for (const auto &[name, also] : sweep.also)
					more.back()[name] = also.at(i);
			}
		points.swap(more);
	}
	// A sweep's values, and what goes with them, may be templates of sizes: "{limit/2}".
	// What can't be worked out stays as it is; the check refuses it.
	std::string value, error;
	for (Values &point : points) {
		for (const Sweep &sweep : scenario.sweeps)
			if (Expand(point[sweep.name], point, &value, &error))
				point[sweep.name] = value;
		for (const Sweep &sweep : scenario.sweeps)
			for (const auto &[name, unused] : sweep.also)
				if (Expand(point[name], point, &value, &error))
					point[name] = value;
	}
	return points;
}

bool Matches(const Filter &filter, const Values &values)
{
	for (const auto &[name, allowed] : filter) {
		auto value = values.find(name);
		if (value == values.end() ||
		    std::find(allowed.begin(), allowed.end(), value->second) == allowed.end())
			return false;
	}
	return true;
}

bool Expand(const std::string &text, const Values &values, std::string *expanded, std::string *error)
{
	std::string result;
	for (size_t at = 0; at < text.size();) {
		if (text[at] != '{') {
			result += text[at++];
			continue;
		}
		size_t end = text.find('}', at);
		if (end == std::string::npos) {
			*error = "there is a { without its }";
			return false;
		}
		std::string inside = text.substr(at + 1, end - at - 1), value;
		auto named = values.find(inside);
		if (named != values.end())
			value = named->second;
		else if (!Calculate(inside, values, &value, error))
			return false;
		result += value;
		at = end + 1;
	}
	*expanded = result;
	return true;
}

} // namespace forktail
