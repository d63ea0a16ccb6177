// SPDX-License-Identifier: MIT
// What the guard was asked for on its command line, and how that and the configuration file are one.
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

} // namespace forktail::live::guard
