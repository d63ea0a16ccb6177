// SPDX-License-Identifier: MIT
// What a scenario does to its servers: ask, start, kill, move slots, wait for, spread soft interrupts.
#pragma once

#include <string>

#include "lab/steps.h"

namespace forktail
{

// False: *error is one sentence. What this host can't do (spread) is noted, and no failure.
bool RunAction(PointRun *run, const Action &action, std::string *error);

} // namespace forktail
