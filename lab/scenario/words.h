// SPDX-License-Identifier: MIT
// Parsers for texts in scenario files: sizes of memory, and command lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::lab
{

// "256MiB", "1GiB", "4096" -> bytes. False: not such a size.
bool ParseBytes(const std::string &text, uint64_t *bytes);

// Splits at blanks; '...' and "..." group words. False: a quote is not closed.
bool SplitWords(const std::string &text, std::vector<std::string> *words);

} // namespace forktail::lab
