// SPDX-License-Identifier: MIT
// The first line of an answer: what happened, how long it took, its share of the slow requests' time, and
// what the percentile would be without it. The cause's name for scripts is in parentheses.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

struct Answer {
	// One to four sentences without line breaks: "fork() for BGREWRITEAOF took 43.7 ms: 55 % of the slow
	// requests' time (fork). Without forks p99.9 would be 8.90 ms instead of 31.3 ms."
	std::string text;
	// What it speaks of, for scripts: "cause", "unattributed", "overload", "outage" or "none".
	const char *kind = "none";
	std::vector<Cause> causes = {}; // named in it, the first one first
	bool sure = true; // false: another place or party may be the culprit, and the text says so
};
Answer AnswerOf(const Explanation &e);

// Its text.
std::string AnswerText(const Explanation &e);

} // namespace forktail::analysis
