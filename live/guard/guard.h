// SPDX-License-Identifier: MIT
// The guard of a ring: follows it as it grows, watches its rules, makes snapshots, answers on the control
// socket and tells the service manager. It never speaks to the recorder, which never waits for it.
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
	bool control = false; // at its place in the ring's directory
	std::string forktail; // who explains; "": nothing is explained
};

// What the options and the configuration come to. False: *error is one sentence.
bool ReadOptions(const GuardOptions &options, Config *config, std::string *error);

// Until SIGTERM or SIGINT, or until the recorder that started it has ended. False: it could not begin, *error
// is one sentence.
bool RunGuard(const GuardOptions &options, const Config &config, std::string *error);

} // namespace forktail::live::guard
