// SPDX-License-Identifier: MIT
// The guard of a ring: follows the recording, checks the trigger rules, takes snapshots, answers on the
// control socket and reports to the service manager. It never communicates with the recorder, which never
// waits for it.
#pragma once

#include <string>
#include <vector>

#include "live/guard/config/config.h"

namespace forktail::live::guard
{

struct GuardOptions {
	std::string path;		// of the ring, or of one recording
	std::vector<std::string> rules; // --on
	std::string config;		// "": none
	std::string metrics, metrics_textfile;
	bool control = false; // in the ring's directory
	std::string forktail; // the program for explanations; "": none
};

// Merges the options and the configuration file. False: *error is one sentence.
bool ReadOptions(const GuardOptions &options, Config *config, std::string *error);

// Runs until SIGTERM or SIGINT, or until the recorder that started it ends. False: it could not start; *error
// is one sentence.
bool RunGuard(const GuardOptions &options, const Config &config, std::string *error);

} // namespace forktail::live::guard
