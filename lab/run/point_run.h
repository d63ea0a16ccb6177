// SPDX-License-Identifier: MIT
// A point of a scenario while it is run: what its steps, their events and their actions share, and what a
// server of the scenario is there.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"
#include "lab/scenario/scenario.h"
#include "lab/servers/servers.h"
#include "results.h"

namespace forktail::lab
{

struct PointRun {
	Session *session = nullptr;
	const Scenario *scenario = nullptr;
	std::string programs;  // directory of forktail and its sisters
	std::string directory; // of the point
	std::string logs;      // of its servers
	// Where steps that aren't recorded put their files; "": beside the others, into the point's
	// directory. Then the recorded step has the point's directory for itself.
	std::string scratch;
	bool plain = false;		   // as in ExperimentOptions
	std::vector<std::string> commands; // of the loads so far
	Topology *topology = nullptr;
	Point *point = nullptr;
	std::string step;			   // the load under way, or ""
	std::vector<std::string> *notes = nullptr; // what this host could not do
};

// A ServerSpec at a point. False: *error is one sentence.
bool MakePlan(const ServerSpec &spec, const Values &values, ServerPlan *plan, std::string *error);

} // namespace forktail::lab
