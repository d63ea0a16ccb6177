// SPDX-License-Identifier: MIT
// The commands `forktail lab list`, `show`, `run` and `compare`.
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
	bool no_client = false; // do not record load generators, whatever the scenario says
	std::string document;	// Markdown file with sections to replace, see document.h; may be empty
	std::string command;	// as typed
	Values settings;	// changed constants and sizes
	bool plain = false;	// as in ExperimentOptions
};

// Directory of forktail's own scenarios: $FORKTAIL_SCENARIOS, else the one at build time.
std::string ScenarioDirectory();

// Print to standard output. False: *error is one sentence, as below.
bool ListScenarios(const std::string &directory, std::string *error);
bool ShowScenario(const std::string &directory, const std::string &name, const std::string &scale,
		  std::string *error);

// Reads and checks all scenarios and their scales before the first one starts.
bool LoadScenarios(const std::string &directory, const RunOptions &options, std::vector<Scenario> *scenarios,
		   std::string *error);

// Runs the scenarios, prints their tables and writes their pages. After a failure the next one runs, unless a
// signal asked to stop; the result is then false. *wrong: nothing was started, because forktail-load rejects
// a load.
bool RunScenarios(Session *session, const std::vector<Scenario> &scenarios, const RunOptions &options,
		  bool *wrong, std::string *error);

// Prints the comparison of two run directories.
bool CompareRuns(const std::string &first, const std::string &second, std::string *error);

} // namespace forktail::lab
