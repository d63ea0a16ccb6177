// SPDX-License-Identifier: MIT
// A scenario's tables, made of its results: what a reader of the published report knows, ours beside theirs.
// Made once, then written as text, Markdown, HTML or CSV (tables_write.cc), and compared (compare.h).
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
	std::optional<double> value;	   // in the unit that is printed; none: a text or no value
	std::optional<double> least, most; // with repeats
};

struct Head {
	std::string title;
	bool key = false;	// says which row it is
	bool published = false; // the published figures of the column before it
	bool number = false;	// to the right
};

struct MadeTable {
	std::string title, note;
	std::vector<Head> heads;
	std::vector<std::vector<Cell>> rows; // each as long as heads
};

// The one point that is for all of these filters, or nullptr if there is none. False: several are; *error is
// one sentence that says in which of the sweeps' variables they differ.
bool FindPoint(const Scenario &scenario, const Results &results, const std::vector<const Filter *> &filters,
	       const Point **point, std::string *error);

// A column's value at a point, and its text. `row` is what {row} stands for.
bool MakeCell(const Scenario &scenario, const Results &results, const Column &column, const Point &point,
	      const std::string &row, Cell *cell, std::string *error);

// What a column's `published` calls a row is its key cells joined by "/": "SET", "8/tcp", "8/tcp/SET".
bool MakeTable(const Scenario &scenario, const Table &table, const Results &results, MadeTable *made,
	       std::string *error);
bool MakeTables(const Scenario &scenario, const Results &results, std::vector<MadeTable> *made,
		std::string *error);

// For a terminal of `width` columns: a wider table continues below with its key columns again. 0: any width.
std::string TableText(const MadeTable &table, size_t width);
std::string TableMarkdown(const MadeTable &table);
std::string TableHtml(const MadeTable &table);
// Numbers without separators; columns for least and most where there are repeats.
std::string TableCsv(const MadeTable &table);

} // namespace forktail::lab
