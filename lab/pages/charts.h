// SPDX-License-Identifier: MIT
// A scenario's charts, made of its results: lines over a variable whose values are numbers, else bars beside
// each other. What was published is drawn in its series' colour, dashed. gnuplot.h draws them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"

namespace forktail::lab
{

struct Dot {
	double x = 0; // the variable's value; of bars the place of its value among them, from 0
	double y = 0; // in the unit of the axis
	std::optional<double> least, most; // with repeats
};

struct Series {
	std::string title;
	bool published = false; // of the series before it
	std::vector<Dot> dots;	// by x
};

struct MadeChart {
	std::string title, x_title, y_title;
	bool log_x = false, log_y = false;
	Format format = Format::kCount;	 // of y
	std::vector<std::string> places; // of bars: what stands below them; empty: lines
	std::vector<Series> series;
};

// A chart for each of `each`, which stands for {row} in its title (or is added to it) and in its figures.
// What `published` calls a dot is the variable's value, as in a table by it: "100"; with `each` "100/SET".
// Charts without any dot are left out. False: *error is one sentence.
bool MakeCharts(const Scenario &scenario, const Results &results, std::vector<MadeChart> *charts,
		std::string *error);

} // namespace forktail::lab
