// SPDX-License-Identifier: MIT
// What `forktail lab list`, `show`, `run` and `compare` do.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"
#include "lab/run/experiment.h"
#include "lab/scenario/scenario.h"

namespace forktail::lab
{

struct RunOptions {
	std::vector<std::string> names; // scenarios, files, or "all"
	std::string scale = "small";
	std::string out; // empty: runs/NAME-<time>
	int repeats = 1;
	bool resume = false;
	bool no_client = false; // load generators aren't recorded, whatever the scenario says
	std::string document;	// whose sections are to be replaced, see document.h; may be empty
	std::string command;	// as typed
	Values settings;	// constants and sizes with other values than the file's
	bool plain = false;	// as in ExperimentOptions
};

// forktail's own scenarios: $FORKTAIL_SCENARIOS, else where they were when it was built.
std::string ScenarioDirectory();

// To standard output. False: *error is one sentence, as below.
bool ListScenarios(const std::string &directory, std::string *error);
bool ShowScenario(const std::string &directory, const std::string &name, const std::string &scale,
		  std::string *error);

// Reads and checks all that are to be run, their scales too, before any is begun.
bool LoadScenarios(const std::string &directory, const RunOptions &options, std::vector<Scenario> *scenarios,
		   std::string *error);

// Runs them in turn, prints their tables, writes their pages. One that fails doesn't keep the next from being
// run, unless a signal asked to stop; it fails the whole in the end. *wrong: nothing was begun, since a
// scenario has a load that forktail-load doesn't take.
bool RunScenarios(Session *session, const std::vector<Scenario> &scenarios, const RunOptions &options,
		  bool *wrong, std::string *error);

// Prints the comparison of two run directories.
bool CompareRuns(const std::string &first, const std::string &second, std::string *error);

} // namespace forktail::lab
