// SPDX-License-Identifier: MIT
// Compares two runs of a scenario, for example before and after a change of the server, the kernel or a
// setting.
#pragma once

#include <string>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"

namespace forktail::lab
{

// *text: differences of scale, host and versions, then every figure of every table with both values and their
// ratio, for a terminal of `width` columns. With repeats a figure is marked if the ranges do not overlap, and
// the text has the probability of that by chance. Texts are not compared. False: the runs are of different
// scenarios; *error is one sentence.
bool CompareResults(const Scenario &scenario, const Results &first, const Results &second, size_t width,
		    std::string *text, std::string *error);

} // namespace forktail::lab
