// SPDX-License-Identifier: MIT
// A cell belongs to the one point that row and column together name; several are a mistake, none is "-".
#include "tables.h"

#include <algorithm>
#include <sstream>

#include "format.h"
#include "lab/scenario/formula.h"
#include "value.h"

namespace forktail::lab
{
namespace
{

const char *const kNoValue = "-";

// "-" if the point has no such variable.
std::string ValueAt(const Point &point, const std::string &variable)
{
	auto value = point.values.find(variable);
	return value == point.values.end() ? kNoValue : value->second;
}

// A row: the values that fix its point, and its name ("" without names).
struct Row {
	Filter fixed;
	std::string name;
	std::vector<std::string> keys; // as printed
	std::string published;	       // what `published` calls it
};

std::string OneLine(const std::string &text)
{
	std::istringstream in(text);
	std::string line;
	for (std::string word; in >> word;)
		line += (line.empty() ? "" : " ") + word;
	return line;
}

// The point that `against` leads to from here: the other sweep variables are the same.
const Point *BaseOf(const Scenario &scenario, const Results &results, const Column &column,
		    const Point &point)
{
	if (column.against.empty())
		return nullptr;
	Filter wanted;
	for (const Sweep &sweep : scenario.sweeps) {
		auto other = column.against.find(sweep.name);
		auto own = point.values.find(sweep.name);
		if (other != column.against.end())
			wanted[sweep.name] = {other->second};
		else if (own != point.values.end())
			wanted[sweep.name] = {own->second};
	}
	for (const Point &candidate : results.points)
		if (Matches(wanted, candidate.values))
			return &candidate;
	return nullptr;
}

Cell TextCell(const Point &point, const std::string &name)
{
	auto text = point.texts.find(name);
	if (text != point.texts.end())
		return {OneLine(text->second), {}, {}, {}};
	return {ValueAt(point, name), {}, {}, {}};
}

void AddRows(const Table &table, Row row, std::vector<Row> *rows)
{
	for (const std::string &key : row.keys)
		row.published += (row.published.empty() ? "" : "/") + key;
	if (table.names.empty()) {
		rows->push_back(row);
		return;
	}
	for (const std::string &name : table.names) {
		Row named = row;
		named.name = name;
		named.keys.push_back(name);
		named.published += (row.published.empty() ? "" : "/") + name;
		rows->push_back(named);
	}
}

std::vector<Row> RowsOf(const Table &table, const Results &results)
{
	std::vector<Row> rows;
	if (table.by.empty()) {
		AddRows(table, {}, &rows);
		return rows;
	}
	std::vector<std::vector<std::string>> seen;
	for (const Point &point : results.points) {
		if (!Matches(table.where, point.values))
			continue;
		Row row;
		for (const std::string &name : table.by) {
			row.keys.push_back(ValueAt(point, name));
			row.fixed[name] = {row.keys.back()};
		}
		if (std::find(seen.begin(), seen.end(), row.keys) != seen.end())
			continue;
		seen.push_back(row.keys);
		AddRows(table, row, &rows);
	}
	return rows;
}

std::vector<Head> HeadsOf(const Scenario &scenario, const Table &table)
{
	std::vector<Head> heads;
	for (const std::string &name : table.by)
		heads.push_back({TitleOf(scenario, name), true, false, false});
	if (!table.names.empty())
		heads.push_back({"", true, false, false});
	for (const Column &column : table.columns) {
		bool number = column.format != Format::kText;
		heads.push_back({WithUnit(column.title, column.format), false, false, number});
		if (!column.published.empty())
			heads.push_back({"published", false, true, true});
	}
	return heads;
}

Cell PublishedCell(const Column &column, const std::string &row)
{
	auto published = column.published.find(row);
	if (published == column.published.end())
		return {kNoValue, {}, {}, {}};
	return {FormatPublished(published->second, column.format), published->second, {}, {}};
}

// Names of rows that are all numbers are read as such.
void AlignKeys(MadeTable *made)
{
	for (size_t i = 0; i < made->heads.size() && made->heads[i].key; i++)
		made->heads[i].number =
		    !made->rows.empty() &&
		    std::all_of(made->rows.begin(), made->rows.end(), [i](const std::vector<Cell> &row) {
			    return row[i].text.find_first_not_of("0123456789.") == std::string::npos;
		    });
}

} // namespace

bool FindPoint(const Scenario &scenario, const Results &results, const std::vector<const Filter *> &filters,
	       const Point **point, std::string *error)
{
	*point = nullptr;
	for (const Point &candidate : results.points) {
		if (!std::all_of(filters.begin(), filters.end(),
				 [&](const Filter *filter) { return Matches(*filter, candidate.values); }))
			continue;
		if (!*point) {
			*point = &candidate;
			continue;
		}
		std::string differs = "nothing";
		for (const Sweep &sweep : scenario.sweeps)
			if (ValueAt(candidate, sweep.name) != ValueAt(**point, sweep.name))
				differs = "\"" + sweep.name + "\"";
		*error = "several points match. They differ in " + differs + ": select one with `where`";
		return false;
	}
	return true;
}

bool MakeCell(const Scenario &scenario, const Results &results, const Column &column, const Point &point,
	      const std::string &row, Cell *cell, std::string *error)
{
	std::string formula = WithRow(column.value, row);
	if (column.format == Format::kText) {
		*cell = TextCell(point, formula);
		return true;
	}
	Value value;
	if (!Evaluate(formula, point, BaseOf(scenario, results, column, point), &value, error))
		return false;
	*cell = {kNoValue, {}, {}, {}};
	if (!value.number)
		return true;
	cell->text = FormatFigure(*value.number, column.format);
	cell->value = InUnit(*value.number, column.format);
	if (value.least && value.most) {
		cell->least = InUnit(*value.least, column.format);
		cell->most = InUnit(*value.most, column.format);
		std::string least = FormatFigure(*value.least, column.format);
		std::string most = FormatFigure(*value.most, column.format);
		if (least != most)
			cell->text += " (" + least + "-" + most + ")";
	}
	return true;
}

bool MakeTable(const Scenario &scenario, const Table &table, const Results &results, MadeTable *made,
	       std::string *error)
{
	*made = {table.title, table.note, HeadsOf(scenario, table), {}};
	for (const Row &row : RowsOf(table, results)) {
		std::vector<Cell> cells;
		for (const std::string &key : row.keys)
			cells.push_back({key, {}, {}, {}});
		for (const Column &column : table.columns) {
			const Point *point = nullptr;
			Cell cell = {kNoValue, {}, {}, {}};
			if (!FindPoint(scenario, results, {&table.where, &row.fixed, &column.where}, &point,
				       error) ||
			    (point && !MakeCell(scenario, results, column, *point, row.name, &cell, error))) {
				*error = "table \"" + table.title + "\", column \"" + column.title + "\"" +
					 (row.published.empty() ? "" : ", row \"" + row.published + "\"") +
					 ": " + *error;
				return false;
			}
			cells.push_back(cell);
			if (!column.published.empty())
				cells.push_back(PublishedCell(column, row.published));
		}
		made->rows.push_back(cells);
	}
	AlignKeys(made);
	return true;
}

bool MakeTables(const Scenario &scenario, const Results &results, std::vector<MadeTable> *made,
		std::string *error)
{
	made->clear();
	for (const Table &table : scenario.tables) {
		made->emplace_back();
		if (!MakeTable(scenario, table, results, &made->back(), error))
			return false;
	}
	return true;
}

} // namespace forktail::lab
