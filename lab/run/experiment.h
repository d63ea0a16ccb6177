// SPDX-License-Identifier: MIT
// Runs a scenario: its points one after the other, each on servers of its own, and what came of them into a
// directory. docs/reference/lab-and-scenarios.md says what lies there.
//
// A point that is done is written before the next begins, so a run that was stopped, or whose machine was,
// goes on from there (resume).
#pragma once

#include <string>

#include "lab/host/session.h"
#include "lab/scenario/scenario.h"
#include "results.h"

namespace forktail::lab
{

struct ExperimentOptions {
	Scale scale;
	std::string scale_text; // as typed
	std::string out;	// must not exist, unless resume
	int repeats = 1;	// of the whole sweep, in turn, so that what changes with time hits all points
	bool resume = false;
	std::string command; // as typed
	Values settings;     // of the scenario's, other than its file's
	// For a person who never saw the scenario's file: messages name no lines of it, and call servers by
	// their programs.
	bool plain = false;
	bool no_client = false; // the scenario's steps say so too
};

// In a run's directory: what was run. Scale and repeats, then the scenario's file.
inline const std::string kIdentityFile = "scenario.txt", kIdentityEnd = "\n\n";

// Of a scenario that prints an explanation, `out` is the recording's directory: that alone is kept, and only
// if all went well.
//
// Runs all points that are not done and collects the results, which are also in out/results.json. False:
// *error is one sentence; what was done stays for resume.
bool RunExperiment(Session *session, const Scenario &scenario, const ExperimentOptions &options,
		   Results *results, std::string *error);

// Does the scenario need root: to record, to limit memory, for swap, to spread soft interrupts?
bool NeedsRoot(const Scenario &scenario);

} // namespace forktail::lab
