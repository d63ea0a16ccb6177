// SPDX-License-Identifier: MIT
// The actions of a scenario: send a command, start, kill, move slots, wait, spread soft interrupts.
#pragma once

#include <string>

#include "point_run.h"

namespace forktail::lab
{

// False: *error is one sentence. If this host does not support `spread`, that is a note, not a failure.
bool RunAction(PointRun *run, const Action &action, std::string *error);

// The only instance of that name; nullptr unless there is exactly one.
Instance *OneInstance(const Topology &topology, const std::string &name, std::string *error);

// Prints a step's `say` text with the values of this point.
bool SayText(const PointRun &run, const std::string &say, std::string *error);

} // namespace forktail::lab
