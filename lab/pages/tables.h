// SPDX-License-Identifier: MIT
// A scenario's tables, from its results, with our figures and the published ones. Written as text, Markdown,
// HTML or CSV (tables_write.cc) and compared (compare.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"

namespace forktail::lab
{

struct Cell {
	std::string text;		   // "-": no value
	std::optional<double> value;	   // in the printed unit; none: a text or no value
	std::optional<double> least, most; // with repeats
};

struct Head {
	std::string title;
	bool key = false;	// a key column
	bool published = false; // the published figures of the column before it
	bool number = false;	// right-aligned
};

struct MadeTable {
	std::string title, note;
	std::vector<Head> heads;
	std::vector<std::vector<Cell>> rows; // each as long as heads
};

// Finds the only point that matches all filters, or nullptr. False: several match; *error names the variables
// in which they differ.
bool FindPoint(const Scenario &scenario, const Results &results, const std::vector<const Filter *> &filters,
	       const Point **point, std::string *error);

// Computes a column's value at a point, and its text. `row` replaces {row}.
bool MakeCell(const Scenario &scenario, const Results &results, const Column &column, const Point &point,
	      const std::string &row, Cell *cell, std::string *error);

// Keys in a column's `published` are the row's key cells joined by "/": "SET", "8/tcp", "8/tcp/SET".
bool MakeTable(const Scenario &scenario, const Table &table, const Results &results, MadeTable *made,
	       std::string *error);
bool MakeTables(const Scenario &scenario, const Results &results, std::vector<MadeTable> *made,
		std::string *error);

// For a terminal of `width` columns (0: unlimited). A wider table continues below with its key columns
// repeated.
std::string TableText(const MadeTable &table, size_t width);
std::string TableMarkdown(const MadeTable &table);
std::string TableHtml(const MadeTable &table);
// Numbers without separators; columns for least and most with repeats.
std::string TableCsv(const MadeTable &table);

} // namespace forktail::lab
