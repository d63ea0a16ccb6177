// SPDX-License-Identifier: MIT
// The first line of an answer: what happened, how long it took, its share of the slow requests' time, and
// what the percentile would be without it. The cause's name for scripts is in parentheses.
#pragma once

#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis
{

// One to three sentences without line breaks: "fork() for BGREWRITEAOF took 43.7 ms: 55 % of the slow
// requests' time (fork). Without forks p99.9 would be 8.90 ms instead of 31.3 ms."
std::string AnswerText(const Explanation &e);

} // namespace forktail::analysis
