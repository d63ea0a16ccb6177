// SPDX-License-Identifier: MIT
// Drops the privileges of the guard to fewer than those of the ring's owner.
#pragma once

#include <string>

namespace forktail::live::guard
{

// Changes from root to the owner of `path`, drops all capabilities (also for children), and forbids system
// calls that access other processes or the kernel. False: *error is one sentence.
bool Confine(const std::string &path, std::string *error);

} // namespace forktail::live::guard
