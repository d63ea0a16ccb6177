// SPDX-License-Identifier: MIT
// Asking the guard for a snapshot, by the name of a trigger: what forktail trigger does. The caller names it,
// the guard's configuration says what it does.
//
// One line each way over a stream socket: a name; "yes " or "no " and a sentence.
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
