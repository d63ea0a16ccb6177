// SPDX-License-Identifier: MIT
// Checks a scenario beyond its types: names exist, templates can be expanded, each step has one action.
#pragma once

#include <string>

#include "scenario.h"

namespace forktail::lab
{

// *mistake: "LINE: reason" of the first error, or "".
void CheckScenario(const Scenario &scenario, std::string *mistake);

// The due time of an event: a share of the load, or a time after its start. False: invalid text.
struct Due {
	bool is_share = false;
	double share = 0;   // 0 to 1
	double seconds = 0; // if it is no share
};
bool ParseDue(const std::string &text, Due *due);

} // namespace forktail::lab
