// SPDX-License-Identifier: MIT
// A running point of a scenario: the state that its steps, events and actions share.
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
	std::string programs;  // directory of forktail's programs
	std::string directory; // of the point
	std::string logs;      // of its servers
	// Directory for the files of unrecorded steps, so that the point's directory only has those of the
	// recorded step; "": all files are in the point's directory.
	std::string scratch;
	bool plain = false;		   // as in ExperimentOptions
	std::vector<std::string> commands; // of the loads so far
	Topology *topology = nullptr;
	Point *point = nullptr;
	std::string step;			   // the current load, or ""
	std::vector<std::string> *notes = nullptr; // what this host does not support
};

// Expands a ServerSpec at a point. False: *error is one sentence.
bool MakePlan(const ServerSpec &spec, const Values &values, ServerPlan *plan, std::string *error);

} // namespace forktail::lab
