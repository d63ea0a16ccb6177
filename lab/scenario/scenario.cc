// SPDX-License-Identifier: MIT
// Expands a scenario: the factor of a scale, the points of the sweeps, and texts with braces. Reading and
// checking are in scenario_read.cc and scenario_check.cc.
#include "scenario.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "arithmetic.h"
#include "common/format.h"

namespace forktail::lab
{
namespace
{

constexpr double kLargestScale = 1000;

bool IsNumber(const std::string &text, double *number)
{
	auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
	return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// A number as a command-line argument, without decimals if it is whole.
std::string NumberText(double number)
{
	char text[32];
	snprintf(text, sizeof text, "%.15g", number);
	return text;
}

// Evaluates arithmetic between braces, rounded down.
bool RoundedDown(const std::string &formula, const Values &values, std::string *result, std::string *error)
{
	std::map<std::string, double> numbers;
	for (const auto &[name, text] : values)
		if (double number; IsNumber(text, &number))
			numbers[name] = number;
	double number = 0;
	std::string message;
	if (!Calculate(formula, numbers, &number, &message)) {
		*error = "{" + formula + "} cannot be evaluated: " + message;
		return false;
	}
	if (!std::isfinite(number)) {
		*error = "{" + formula + "} is not a number";
		return false;
	}
	*result = NumberText(std::floor(number));
	return true;
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
	*error = "a scale must be a number above 0 and at most 1000";
	for (const auto &[name, unused] : scenario.scales)
		*error += ", or " + name;
	*error += ", not \"" + text + "\"";
	return false;
}

std::vector<Values> PointsOf(const Scenario &scenario, const Scale &scale)
{
	Values first = scenario.constants;
	for (const Size &size : scenario.sizes)
		first[size.name] =
		    NumberText(std::max(size.least, std::round(size.full * (size.fixed ? 1 : scale.factor))));
	std::string worked_out, error;
	for (const auto &[name, text] : scenario.constants)
		if (Expand(text, first, &worked_out, &error))
			first[name] = worked_out;
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
	// A sweep's values and its `also` may be templates: "{limit/2}". Invalid ones stay unchanged, and
	// CheckScenario() rejects them.
	for (Values &point : points) {
		for (const Sweep &sweep : scenario.sweeps)
			if (Expand(point[sweep.name], point, &worked_out, &error))
				point[sweep.name] = worked_out;
		for (const Sweep &sweep : scenario.sweeps)
			for (const auto &[name, unused] : sweep.also)
				if (Expand(point[name], point, &worked_out, &error))
					point[name] = worked_out;
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

namespace
{

// Replaces the parts in braces by the results of `fill`.
bool Replace(const std::string &text,
	     const std::function<bool(const std::string &inside, std::string *value)> &fill,
	     std::string *replaced, std::string *error)
{
	std::string result;
	for (size_t at = 0; at < text.size();) {
		if (text[at] != '{') {
			result += text[at++];
			continue;
		}
		size_t end = text.find('}', at);
		if (end == std::string::npos) {
			*error = "a { has no closing }";
			return false;
		}
		std::string inside = text.substr(at + 1, end - at - 1), value;
		if (!fill(inside, &value))
			return false;
		result += value;
		at = end + 1;
	}
	*replaced = result;
	return true;
}

bool Fill(const std::string &inside, const Values &values, std::string *value, std::string *error)
{
	auto named = values.find(inside);
	if (named == values.end())
		return RoundedDown(inside, values, value, error);
	*value = named->second;
	return true;
}

// "keys:count" -> "keys" and its formatter; nullptr: none.
using Writer = std::string (*)(uint64_t);
Writer WriterOf(std::string *inside)
{
	for (auto [suffix, writer] : {std::pair<std::string, Writer>{":count", common::FormatCount},
				      std::pair<std::string, Writer>{":bytes", common::FormatBytes}})
		if (inside->ends_with(suffix)) {
			inside->resize(inside->size() - suffix.size());
			return writer;
		}
	return nullptr;
}

} // namespace

bool Expand(const std::string &text, const Values &values, std::string *expanded, std::string *error)
{
	auto fill = [&](const std::string &inside, std::string *value) {
		return Fill(inside, values, value, error);
	};
	return Replace(text, fill, expanded, error);
}

bool ExpandText(const std::string &text, const Values &values,
		const std::function<std::optional<double>(const std::string &)> &figure,
		std::string *expanded, std::string *error)
{
	auto fill = [&](std::string inside, std::string *value) {
		Writer writer = WriterOf(&inside);
		std::optional<double> number = figure(inside);
		if (number)
			*value = NumberText(*number);
		else if (!Fill(inside, values, value, error))
			return false;
		double written = 0;
		if (writer && IsNumber(*value, &written) && written >= 0)
			*value = writer(static_cast<uint64_t>(written));
		return true;
	};
	return Replace(text, fill, expanded, error);
}

std::string TitleOf(const Scenario &scenario, const std::string &variable)
{
	for (const Sweep &sweep : scenario.sweeps)
		if (sweep.name == variable && !sweep.title.empty())
			return sweep.title;
	return variable;
}

} // namespace forktail::lab
