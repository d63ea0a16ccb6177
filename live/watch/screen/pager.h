// SPDX-License-Identifier: MIT
// A program's output in the user's pager.
#pragma once

#include <string>
#include <vector>

namespace forktail::live::watch
{

// Runs argv with what it prints, errors too, going to $PAGER (else less, else more), both as wide as
// `columns`; comes back when the pager has ended. "" or why it couldn't.
std::string ShowInPager(const std::vector<std::string> &argv, size_t columns);

} // namespace forktail::live::watch
