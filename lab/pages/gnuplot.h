// SPDX-License-Identifier: MIT
// Draws charts as SVG by gnuplot, which is a program of its own: without it there are no charts, and that is
// said.
#pragma once

#include <string>
#include <vector>

#include "charts.h"
#include "lab/host/session.h"

namespace forktail::lab
{

struct DrawnChart {
	std::string title;
	std::string svg; // a whole file; the same for the same data
};

// *note: why there are no charts, if gnuplot isn't here or fails. False: a signal asked to stop.
bool DrawCharts(Session *session, const std::vector<MadeChart> &charts, std::vector<DrawnChart> *drawn,
		std::string *note, std::string *error);

// What gnuplot is told for one chart; `output` is the file it writes.
std::string GnuplotScript(const MadeChart &chart, const std::string &output);

} // namespace forktail::lab
