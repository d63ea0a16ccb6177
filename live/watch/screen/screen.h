// SPDX-License-Identifier: MIT
// `forktail watch` on a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "analysis/text.h"

namespace forktail::live::watch
{

struct ScreenOptions {
	std::string path;    // a ring's directory, or a recording
	std::string program; // forktail itself, for explain
	double interval_s = 1;
	analysis::Style style;
	bool utf8 = false; // the terminal's locale is UTF-8
	// Takes a snapshot of [from_ns, to_ns) and returns one sentence. Called on a separate thread; `at_ns`
	// is the middle, since 1970.
	std::function<std::string(uint64_t from_ns, uint64_t to_ns, uint64_t at_ns)> snapshot;
};

// Runs until the user quits. False: the terminal is not usable; *error is one sentence.
bool RunScreen(const ScreenOptions &options, std::string *error);

} // namespace forktail::live::watch
