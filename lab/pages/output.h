// SPDX-License-Identifier: MIT
// The tables and charts of a scenario's run, made once for all outputs.
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
	std::string note; // why there are no charts, or ""
};

// False: *error names the invalid table or chart, or a stop signal.
bool MakeOutput(Session *session, const Scenario &scenario, const Results &results, Output *output,
		std::string *error);

// Writes each chart to a file NAME-1.svg.
bool WriteCharts(const std::string &directory, const std::string &name, const Output &output,
		 std::string *error);

} // namespace forktail::lab
