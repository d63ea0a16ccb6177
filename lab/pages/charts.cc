// SPDX-License-Identifier: MIT
// The points of a series are found like the cells of a table, one for each value of the variable on the x
// axis.
#include "charts.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "format.h"
#include "tables.h"

namespace forktail::lab
{
namespace
{

const std::string kRow = "{row}";

// Positions on the x axis: the numbers themselves, or indices of texts.
struct Axis {
	bool numbers = true;
	std::vector<std::string> values; // values of points, then values that only the publication has
};

bool IsNumber(const std::string &text, double *number)
{
	auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *number);
	return failed == std::errc() && end == text.data() + text.size() && std::isfinite(*number);
}

// The x value of a key in `published`. False: the key belongs to another row.
bool PublishedX(const std::string &key, const Chart &chart, const std::string &row, std::string *x)
{
	*x = key;
	if (chart.each.empty())
		return true;
	std::string end = "/" + row;
	if (key.size() <= end.size() || key.compare(key.size() - end.size(), end.size(), end) != 0)
		return false;
	*x = key.substr(0, key.size() - end.size());
	return true;
}

// Replaces {row} by the row's own name, not by its name in figures.
std::string Titled(std::string title, const std::string &row)
{
	for (size_t at = 0; (at = title.find(kRow, at)) != std::string::npos; at += row.size())
		title.replace(at, kRow.size(), row);
	return title;
}

std::string TitleOf(const Chart &chart, const std::string &row)
{
	if (chart.each.empty())
		return chart.title;
	bool named = chart.title.find(kRow) != std::string::npos;
	return named ? Titled(chart.title, row) : chart.title + ": " + row;
}

Axis AxisOf(const Chart &chart, const Results &results, const std::string &row)
{
	Axis axis;
	auto add = [&](const std::string &value) {
		double unused = 0;
		axis.numbers = axis.numbers && IsNumber(value, &unused);
		if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
			axis.values.push_back(value);
	};
	for (const Point &point : results.points) {
		auto value = point.values.find(chart.x);
		if (value != point.values.end() && Matches(chart.where, point.values))
			add(value->second);
	}
	std::string x;
	for (const Column &column : chart.series)
		for (const auto &[key, unused] : column.published)
			if (PublishedX(key, chart, row, &x))
				add(x);
	return axis;
}

double PlaceOf(const Axis &axis, const std::string &value)
{
	double number = 0;
	if (axis.numbers && IsNumber(value, &number))
		return number;
	return static_cast<double>(std::find(axis.values.begin(), axis.values.end(), value) -
				   axis.values.begin());
}

// A logarithmic axis cannot show 0.
void AddDot(const MadeChart &chart, const Dot &dot, Series *series)
{
	if ((chart.log_y && dot.y <= 0) || (chart.log_x && dot.x <= 0))
		return;
	series->dots.push_back(dot);
	if (chart.log_y && dot.least.value_or(1) <= 0)
		series->dots.back().least = dot.y;
}

bool AddSeries(const Scenario &scenario, const Results &results, const Chart &chart, const Column &column,
	       const std::string &row, const Axis &axis, MadeChart *made, std::string *error)
{
	std::string title = Titled(column.title, row);
	Series ours{title, false, {}}, theirs{title + " (published)", true, {}};
	for (const std::string &value : axis.values) {
		const Point *point = nullptr;
		Filter here = {{chart.x, {value}}};
		Cell cell;
		if (!FindPoint(scenario, results, {&chart.where, &column.where, &here}, &point, error) ||
		    (point && !MakeCell(scenario, results, column, *point, row, &cell, error))) {
			*error = "chart \"" + chart.title + "\", series \"" + column.title + "\" at \"" +
				 value + "\": " + *error;
			return false;
		}
		if (cell.value)
			AddDot(*made, {PlaceOf(axis, value), *cell.value, cell.least, cell.most}, &ours);
	}
	std::string x;
	for (const auto &[key, figure] : column.published)
		if (PublishedX(key, chart, row, &x))
			AddDot(*made, {PlaceOf(axis, x), figure, {}, {}}, &theirs);
	for (Series *series : {&ours, &theirs})
		std::sort(series->dots.begin(), series->dots.end(),
			  [](const Dot &a, const Dot &b) { return a.x < b.x; });
	// Our series are added even if empty, so that colors are the same in all charts.
	made->series.push_back(ours);
	if (!theirs.dots.empty())
		made->series.push_back(theirs);
	return true;
}

bool MakeChart(const Scenario &scenario, const Results &results, const Chart &chart, const std::string &row,
	       MadeChart *made, std::string *error)
{
	Axis axis = AxisOf(chart, results, row);
	Format format = chart.series.empty() ? Format::kCount : chart.series[0].format;
	*made = {TitleOf(chart, row),
		 TitleOf(scenario, chart.x),
		 WithUnit(chart.y, format),
		 chart.log_x && axis.numbers,
		 chart.log_y,
		 format,
		 axis.numbers ? std::vector<std::string>() : axis.values,
		 {}};
	for (const Column &column : chart.series)
		if (!AddSeries(scenario, results, chart, column, row, axis, made, error))
			return false;
	return true;
}

} // namespace

bool MakeCharts(const Scenario &scenario, const Results &results, std::vector<MadeChart> *charts,
		std::string *error)
{
	charts->clear();
	for (const Chart &chart : scenario.charts)
		for (const std::string &row :
		     chart.each.empty() ? std::vector<std::string>{""} : chart.each) {
			MadeChart made;
			if (!MakeChart(scenario, results, chart, row, &made, error))
				return false;
			if (std::any_of(made.series.begin(), made.series.end(),
					[](const Series &series) { return !series.dots.empty(); }))
				charts->push_back(std::move(made));
		}
	return true;
}

} // namespace forktail::lab
