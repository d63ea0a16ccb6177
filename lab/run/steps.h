// SPDX-License-Identifier: MIT
// Running a point's steps: loads with their events, and actions in between.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/scenario/scenario.h"
#include "point_run.h"

namespace forktail::lab
{

// False: *error is one sentence, as below.
bool RunStep(PointRun *run, const StepSpec &step, std::string *error);

// Explains what the point's steps recorded, and writes their report pages.
bool ExplainSteps(PointRun *run, std::string *error);

// The same of the one step of a scenario that prints it: explained to standard output.
bool PrintExplanation(PointRun *run, std::string *error);

// An event, and when it is due: seconds after its load's start.
using TimedEvent = std::pair<double, const Action *>;

// A step's events in the order in which they are due. `words` are its load's, whose --duration shares are of.
std::vector<TimedEvent> EventTimes(const StepSpec &step, const std::vector<std::string> &words);

} // namespace forktail::lab
