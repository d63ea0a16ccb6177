// SPDX-License-Identifier: MIT
// A scenario's charts, from its results: lines over a variable with numbers, else bars side by side.
// Published figures have the color of their series, dashed. gnuplot.h draws them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"

namespace forktail::lab
{

struct Dot {
	double x = 0;			   // the variable's value; of bars its index, from 0
	double y = 0;			   // in the unit of the axis
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
	std::vector<std::string> places; // labels below bars; empty: lines
	std::vector<Series> series;
};

// Makes one chart per name in `each`, which replaces {row} in titles (or is appended) and figures. Keys of
// `published` are the variable's values: "100", with `each` "100/SET". Charts without dots are left out.
// False: *error is one sentence.
bool MakeCharts(const Scenario &scenario, const Results &results, std::vector<MadeChart> *charts,
		std::string *error);

} // namespace forktail::lab
