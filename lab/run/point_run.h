// SPDX-License-Identifier: MIT
// Running a point's steps: loads with their events, and actions in between.
#pragma once

#include <string>
#include <vector>

#include "lab/results.h"
#include "lab/scenario.h"
#include "lab/servers.h"
#include "lab/session.h"

namespace forktail
{

struct PointRun {
	Session *session = nullptr;
	const Scenario *scenario = nullptr;
	std::string programs;  // directory of forktail and its sisters
	std::string directory; // of the point, absolute
	Topology *topology = nullptr;
	Point *point = nullptr;
	std::string step;			   // the load under way, or ""
	std::vector<std::string> *notes = nullptr; // what this host could not do
};

// A ServerSpec at a point. False: *error is one sentence, as below.
bool MakePlan(const ServerSpec &spec, const Values &values, ServerPlan *plan, std::string *error);

bool RunStep(PointRun *run, const StepSpec &step, std::string *error);

// Explains what the point's steps recorded, and writes their report pages.
bool ExplainSteps(PointRun *run, std::string *error);

// Words apart by blanks; '...' and "..." keep them together. False: a quote that doesn't end.
bool SplitWords(const std::string &text, std::vector<std::string> *words);

} // namespace forktail
