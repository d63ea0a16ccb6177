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

// Explains the only recorded step to standard output, for a scenario that prints it.
bool PrintExplanation(PointRun *run, std::string *error);

// An event and its due time in seconds after the start of the load.
using TimedEvent = std::pair<double, const Action *>;

// A step's events by due time. `words` are the load's arguments; shares are of its --duration.
std::vector<TimedEvent> EventTimes(const StepSpec &step, const std::vector<std::string> &words);

} // namespace forktail::lab
