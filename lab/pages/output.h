// SPDX-License-Identifier: MIT
// The tables and the charts of a scenario's run, made once for whatever shows them.
#pragma once

#include <string>
#include <vector>

#include "gnuplot.h"
#include "lab/run/results.h"
#include "lab/scenario/scenario.h"
#include "tables.h"

namespace forktail::lab
{

struct Output {
	std::vector<MadeTable> tables;
	std::vector<DrawnChart> charts;
	std::string note; // why there are no charts; empty: there are
};

// False: *error says which table or chart is wrong, or that a signal asked to stop.
bool MakeOutput(Session *session, const Scenario &scenario, const Results &results, Output *output,
		std::string *error);

// The short form of an output, for a document: the first table and, with `chart`, the first chart. A table
// with published figures keeps its keys, its texts, and the columns with published figures. With more than 12
// rows it keeps only the rows with published figures.
Output ShortOutput(const Output &output, bool chart);

// Writes each chart to a file NAME-1.svg.
bool WriteCharts(const std::string &directory, const std::string &name, const Output &output,
		 std::string *error);

} // namespace forktail::lab
