// SPDX-License-Identifier: MIT
// Shows a program's output in the user's pager.
#pragma once

#include <string>
#include <vector>

namespace forktail::live::watch
{

// Runs argv with its output and errors in $PAGER (else less, else more), with `columns` columns. Returns when
// the pager ends: "" or an error.
std::string ShowInPager(const std::vector<std::string> &argv, size_t columns);

} // namespace forktail::live::watch
