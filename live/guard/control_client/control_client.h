// SPDX-License-Identifier: MIT
// Requests a snapshot from the guard by the name of a trigger, for forktail trigger. The guard's
// configuration defines what the trigger does.
//
// One line in each direction over a stream socket: a name; then "yes " or "no " and a sentence.
#pragma once

#include <string>

namespace forktail::live::guard
{

constexpr char kControlName[] = "control"; // in the ring's directory
constexpr size_t kMostAsked = 200;	   // bytes of a line

enum class Asked { Yes, No, Cant };

// `path` is the ring's directory or the socket. *answer is one sentence in each case.
Asked AskForTrigger(const std::string &path, const std::string &name, std::string *answer);

} // namespace forktail::live::guard
