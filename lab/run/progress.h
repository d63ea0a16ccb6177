// SPDX-License-Identifier: MIT
// What the lab tells the person waiting, on standard error: standard output is left to results.
#pragma once

#include <string>

namespace forktail::lab
{

// A new step, on a line of its own: "[  3.2 s] text", counted from the first call.
void Say(const std::string &text);
// How a step goes on. On a terminal the next line replaces it, elsewhere each is a line.
void SayMeanwhile(const std::string &text);

} // namespace forktail::lab
