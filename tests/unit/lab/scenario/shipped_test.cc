// SPDX-License-Identifier: MIT
// forktail's own scenarios: tables and charts can be made from their points at every scale, and each
// published figure is in a row.
#include <algorithm>
#include <filesystem>
#include <set>

#include "lab/commands.h"
#include "lab/pages/charts.h"
#include "lab/pages/tables.h"
#include "lab/scenario/formula.h"
#include "tests/support/catch.h"

using namespace forktail::lab;

namespace
{

std::vector<Scenario> Shipped()
{
	std::vector<Scenario> scenarios;
	for (const auto &entry : std::filesystem::directory_iterator(ScenarioDirectory())) {
		if (entry.path().extension() != ".toml")
			continue;
		std::string error;
		scenarios.emplace_back();
		bool good = ReadScenario(entry.path(), &scenarios.back(), &error);
		INFO(error);
		REQUIRE(good);
	}
	REQUIRE(scenarios.size() > 10);
	return scenarios;
}

// Every figure that a column names, at every point.
void AddFigures(const std::vector<Column> &columns, std::vector<std::string> rows, Results *results)
{
	if (rows.empty())
		rows.push_back("");
	for (Point &point : results->points)
		for (const Column &column : columns)
			for (const std::string &row : rows)
				for (std::string name : NamesIn(WithRow(column.value, row))) {
					if (name.rfind("base.", 0) == 0)
						name.erase(0, 5);
					if (column.format == Format::kText)
						point.texts[name] = "a text";
					else if (!point.values.count(name))
						point.numbers[name] = 1000 + static_cast<double>(name.size());
				}
}

Results All(const Scenario &scenario, const Scale &scale)
{
	Results results;
	for (const Values &values : PointsOf(scenario, scale)) {
		results.points.emplace_back();
		results.points.back().values = values;
	}
	for (const Table &table : scenario.tables)
		AddFigures(table.columns, table.names, &results);
	for (const Chart &chart : scenario.charts)
		AddFigures(chart.series, chart.each, &results);
	return results;
}

} // namespace

TEST_CASE("tables and charts of every scenario can be made at every scale")
{
	for (const Scenario &scenario : Shipped()) {
		std::vector<Scale> scales = {{"", 1}};
		for (const auto &[name, factor] : scenario.scales)
			scales.push_back({name, factor});
		for (const Scale &scale : scales) {
			INFO(scenario.name << " at scale " << scale.name);
			Results results = All(scenario, scale);
			std::vector<MadeTable> tables;
			std::vector<MadeChart> charts;
			std::string error;
			bool good = MakeTables(scenario, results, &tables, &error) &&
				    MakeCharts(scenario, results, &charts, &error);
			INFO(error);
			REQUIRE(good);
			if (!scale.name.empty()) // has fewer values, so that columns may be empty
				continue;
			for (const MadeTable &table : tables) {
				INFO(table.title);
				REQUIRE_FALSE(table.rows.empty());
				for (size_t i = 0; i < table.heads.size(); i++) {
					INFO(table.heads[i].title);
					if (!table.heads[i].published)
						CHECK(std::any_of(table.rows.begin(), table.rows.end(),
								  [i](const std::vector<Cell> &row) {
									  return row[i].text != "-";
								  }));
				}
			}
			for (const MadeChart &chart : charts) {
				INFO(chart.title);
				for (const Series &series : chart.series)
					CHECK_FALSE(series.dots.empty());
			}
		}
	}
}

TEST_CASE("every published figure is in a row at full scale")
{
	for (const Scenario &scenario : Shipped()) {
		Results results = All(scenario, {"", 1});
		for (const Table &table : scenario.tables) {
			MadeTable made;
			std::string error;
			REQUIRE(MakeTable(scenario, table, results, &made, &error));
			std::set<std::string> rows;
			for (const auto &row : made.rows) {
				std::string name;
				for (size_t i = 0; i < row.size() && made.heads[i].key; i++)
					name += (i ? "/" : "") + row[i].text;
				rows.insert(name);
			}
			for (const Column &column : table.columns)
				for (const auto &[row, unused] : column.published) {
					INFO(scenario.name << ", " << table.title << ", " << column.title
							   << ": " << row);
					CHECK(rows.count(row) == 1);
				}
		}
	}
}
