// SPDX-License-Identifier: MIT
// What a scenario has to be beyond its types: names that exist, templates that can be filled in, steps of
// which each is one thing.
#pragma once

#include <string>

#include "scenario.h"

namespace forktail::lab
{

// *mistake: "LINE: reason" of the first one, or left empty.
void CheckScenario(const Scenario &scenario, std::string *mistake);

// When an event is due: a share of the load, or a time after its start. False: the text is neither.
struct Due {
	bool is_share = false;
	double share = 0;   // 0 to 1
	double seconds = 0; // if it is no share
};
bool ParseDue(const std::string &text, Due *due);

} // namespace forktail::lab
