// SPDX-License-Identifier: MIT
// Finds the time of a message in a server's log.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::lab
{

// The time of a line of Redis' or Sentinel's log ("123:M 21 Nov 2026 12:39:49.419 * ..."), in ns since 1970;
// 0 if it has none.
uint64_t TimeOfLine(const std::string &line);

// The time of the first line with the text, not earlier than `from_ns`; 0: none.
uint64_t FindInLog(const std::string &path, const std::string &text, uint64_t from_ns);

} // namespace forktail::lab
