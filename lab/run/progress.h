// SPDX-License-Identifier: MIT
// Progress messages on standard error; standard output is for results.
#pragma once

#include <string>

namespace forktail::lab
{

// Prints a step on its own line: "[ 3.2 s] text", with the time since the first call.
void Say(const std::string &text);
// Prints progress within a step. On a terminal the next line replaces it.
void SayMeanwhile(const std::string &text);

} // namespace forktail::lab
