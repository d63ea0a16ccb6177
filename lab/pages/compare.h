// SPDX-License-Identifier: MIT
// Two runs of a scenario beside each other: before and after a change of the server, of the kernel, of a
// setting.
#pragma once

#include <string>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"

namespace forktail::lab
{

// *text: what else differs between the runs (scale, host, versions), then every figure of every table with
// both values and their ratio, for a terminal of `width` columns. With repeats a figure is marked if the
// ranges of the two don't overlap, and the text says how often that is chance; a single run can't tell a
// change from noise. Texts aren't compared. False: *error is one sentence; runs of different scenarios can't
// be compared.
bool CompareResults(const Scenario &scenario, const Results &first, const Results &second, size_t width,
		    std::string *text, std::string *error);

} // namespace forktail::lab
