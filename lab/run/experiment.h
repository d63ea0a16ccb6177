// SPDX-License-Identifier: MIT
// Runs a scenario: its points one after another, each on new servers, and writes the results to a directory,
// described in docs/reference/lab-and-scenarios.md.
//
// A point is written before the next one starts, so an interrupted run can be resumed.
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
	int repeats = 1;	// of the whole sweep, so that drift affects all points
	bool resume = false;
	std::string command; // as typed
	Values settings;     // changed constants and sizes
	// For users who do not know the scenario's file: messages have no line numbers and name servers by
	// their programs.
	bool plain = false;
	bool no_client = false; // also set in the scenario's steps
};

// The file in a run directory that identifies the run: scale and repeats, then the scenario's file.
inline const std::string kIdentityFile = "scenario.txt", kIdentityEnd = "\n\n";

// For a scenario that prints an explanation, `out` is the recording's directory, which remains only on
// success.
//
// Runs all missing points and collects the results, also in out/results.json. False: *error is one sentence;
// finished points stay for resume.
bool RunExperiment(Session *session, const Scenario &scenario, const ExperimentOptions &options,
		   Results *results, std::string *error);

// True if the scenario needs root: to record, limit memory, use swap or spread soft interrupts.
bool NeedsRoot(const Scenario &scenario);

} // namespace forktail::lab
