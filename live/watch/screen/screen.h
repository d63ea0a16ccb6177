// SPDX-License-Identifier: MIT
// `forktail watch` on a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "analysis/text/layout.h"

namespace forktail::live::watch
{

struct ScreenOptions {
	std::string path;    // a ring's directory, or a recording
	std::string program; // forktail itself, for explain
	double interval_s = 1;
	analysis::Style style;
	bool utf8 = false; // the terminal's locale has all letters, whatever is drawn with
	// Takes a snapshot of [from_ns, to_ns) and says what came of it, one sentence. Called on a thread of
	// its own; `at_ns` is the middle, since 1970.
	std::function<std::string(uint64_t from_ns, uint64_t to_ns, uint64_t at_ns)> snapshot;
};

// Until q. True; or false and *error, one sentence: there is no terminal that could show it.
bool RunScreen(const ScreenOptions &options, std::string *error);

} // namespace forktail::live::watch
