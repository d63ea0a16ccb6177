// SPDX-License-Identifier: MIT
// Figures have three significant digits unless the format has fixed decimals.
#include "format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "common/format.h"

namespace forktail::lab
{
namespace
{

constexpr int kMostDecimals = 6;

// The number of decimals for `significant` digits, after rounding: 9.996 is 10.0, not 10.00.
int DecimalsFor(double number, int significant, int most)
{
	if (number == 0)
		return 0;
	double magnitude = std::floor(std::log10(std::fabs(number)));
	double unit = std::pow(10, magnitude - significant + 1);
	magnitude = std::floor(std::log10(std::fabs(std::round(number / unit) * unit)) + 1e-9);
	return std::clamp(significant - 1 - static_cast<int>(magnitude), 0, most);
}

std::string WithoutZeros(std::string text)
{
	if (text.find('.') == std::string::npos)
		return text;
	while (text.back() == '0')
		text.pop_back();
	if (text.back() == '.')
		text.pop_back();
	return text;
}

// 901 -> 0, 1.25 -> 2.
int DecimalsOf(double number)
{
	char text[64];
	snprintf(text, sizeof text, "%.*f", kMostDecimals, number);
	std::string digits = WithoutZeros(text);
	size_t point = digits.find('.');
	return point == std::string::npos ? 0 : static_cast<int>(digits.size() - point - 1);
}

int FixedDecimals(Format format)
{
	return format == Format::kDecimals1 ? 1 : format == Format::kDecimals2 ? 2 : 0;
}

} // namespace

std::string UnitOf(Format format)
{
	switch (format) {
	case Format::kPercent:
		return "%";
	case Format::kMs:
		return "ms";
	case Format::kUs:
		return "us";
	case Format::kSeconds:
		return "s";
	default:
		return "";
	}
}

double InUnit(double figure, Format format)
{
	switch (format) {
	case Format::kMs:
		return figure / 1e6;
	case Format::kUs:
		return figure / 1e3;
	case Format::kSeconds:
		return figure / 1e9;
	default:
		return figure;
	}
}

std::string FormatDecimals(double number, int decimals)
{
	char text[400]; // the largest double has 309 digits
	snprintf(text, sizeof text, "%.*f", decimals, number);
	std::string digits = text;
	if (digits.find_first_not_of("-0.") == std::string::npos && digits[0] == '-')
		digits.erase(0, 1);
	size_t first = digits[0] == '-' ? 1 : 0;
	size_t end = std::min(digits.find('.'), digits.size());
	for (size_t at = end; at > first + 3; at -= 3)
		digits.insert(at - 3, ",");
	return digits;
}

std::string FormatFigure(double figure, Format format)
{
	double number = InUnit(figure, format);
	switch (format) {
	case Format::kNumber:
		return WithoutZeros(FormatDecimals(number, DecimalsFor(number, 4, kMostDecimals)));
	case Format::kDecimals1:
	case Format::kDecimals2:
		return FormatDecimals(number, FixedDecimals(format));
	case Format::kPercent:
		return FormatDecimals(number, std::fabs(number) < 99.95 ? 1 : 0);
	case Format::kMs:
	case Format::kUs:
	case Format::kSeconds:
		return FormatDecimals(number, DecimalsFor(number, 3, 3));
	case Format::kBytes:
		if (std::fabs(number) < 1.8e19)
			return (number < 0 ? "-" : "") +
			       common::FormatBytes(static_cast<uint64_t>(std::llround(std::fabs(number))));
		break;
	default:
		break;
	}
	return FormatDecimals(number, 0);
}

std::string FormatPublished(double published, Format format)
{
	if (format == Format::kBytes)
		return FormatFigure(published, format);
	return FormatDecimals(published, DecimalsOf(published));
}

std::string WithUnit(const std::string &title, Format format)
{
	std::string unit = UnitOf(format);
	if (unit.empty())
		return title;
	auto letter = [&](size_t at) {
		return at < title.size() && isalnum(static_cast<unsigned char>(title[at]));
	};
	for (size_t at = 0; (at = title.find(unit, at)) != std::string::npos; at++)
		if ((at == 0 || !letter(at - 1)) && !letter(at + unit.size()))
			return title;
	return title + ", " + unit;
}

} // namespace forktail::lab
