// SPDX-License-Identifier: MIT
// Notations of scenario files that stand inside texts: sizes of memory, and command lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::lab
{

// "256MiB", "1GiB", "4096" -> bytes. False: not such a size.
bool ParseBytes(const std::string &text, uint64_t *bytes);

// Words apart by blanks; '...' and "..." keep them together. False: a quote that doesn't end.
bool SplitWords(const std::string &text, std::vector<std::string> *words);

} // namespace forktail::lab
