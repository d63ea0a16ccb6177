// SPDX-License-Identifier: MIT
// Draws charts as SVG with the program gnuplot; without it a note says that there are no charts.
#pragma once

#include <string>
#include <vector>

#include "charts.h"
#include "lab/host/session.h"

namespace forktail::lab
{

struct DrawnChart {
	std::string title;
	std::string svg; // a complete file; identical for identical data
};

// *note: the reason if gnuplot is missing or fails. False: a stop signal.
bool DrawCharts(Session *session, const std::vector<MadeChart> &charts, std::vector<DrawnChart> *drawn,
		std::string *note, std::string *error);

// The gnuplot script for one chart; `output` is its output file.
std::string GnuplotScript(const MadeChart &chart, const std::string &output);

} // namespace forktail::lab
