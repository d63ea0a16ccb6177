// SPDX-License-Identifier: MIT
// Numbers for human readers: three significant digits, a unit, thousands separated by commas.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::common
{

std::string FormatDuration(uint64_t ns);    // "812 ns", "58.9 ms", "1.20 s", "312 s"
std::string FormatCount(uint64_t n);	    // "1,204,311"
std::string FormatBytes(uint64_t bytes);    // "84.0 MB" (10^6), "1.10 GB"
std::string FormatPercent(double fraction); // 0.614 -> "61.4 %", 0.0004 -> "0.04 %", 1 -> "100 %"
std::string FormatShare(double fraction);   // the same in whole percent from 1 % on: "61 %"
std::string FormatOffset(uint64_t t_ns, uint64_t zero_ns);	   // "+12.304 s"; "-0.120 s" before zero
std::string Plural(uint64_t n, const char *one, const char *many); // "1 request", "2,412 requests"

} // namespace forktail::common
