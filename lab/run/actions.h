// SPDX-License-Identifier: MIT
// What a scenario does to its servers: ask, start, kill, move slots, wait for, spread soft interrupts.
#pragma once

#include <string>

#include "point_run.h"

namespace forktail::lab
{

// False: *error is one sentence. What this host can't do (spread) is noted, and no failure.
bool RunAction(PointRun *run, const Action &action, std::string *error);

// The one instance that is called so; nullptr: there is none, or there are several.
Instance *OneInstance(const Topology &topology, const std::string &name, std::string *error);

// Tells the person waiting what a step's `say` comes to at this point.
bool Tell(const PointRun &run, const std::string &say, std::string *error);

} // namespace forktail::lab
