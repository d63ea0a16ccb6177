// SPDX-License-Identifier: MIT
// Numbers, times and addresses as text.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::common
{

// Numbers for human readers: three significant digits, a unit, thousands separated by commas.

std::string FormatDuration(uint64_t ns);    // "812 ns", "58.9 ms", "1.20 s", "312 s"
std::string FormatCount(uint64_t n);	    // "1,204,311"
std::string FormatBytes(uint64_t bytes);    // "84.0 MB" (10^6), "1.10 GB"
std::string FormatPercent(double fraction); // 0.614 -> "61.4 %", 0.0004 -> "0.04 %", 1 -> "100 %"
std::string FormatShare(double fraction);   // the same in whole percent from 1 % on: "61 %"
std::string FormatOffset(uint64_t t_ns, uint64_t zero_ns);	   // "+12.304 s"; "-0.120 s" before zero
std::string Plural(uint64_t n, const char *one, const char *many); // "1 request", "2,412 requests"

// The address of a client in text, without its port.

// "10.0.0.7", "2001:db8::7", or "client-00f1e2d3c4b5a697" for a hashed address. "" for zeros.
std::string ClientAddress(const uint8_t (&address)[16], bool hashed);

// At most `bytes` of `text`, which end with a whole character.
std::string Cut(const std::string &text, size_t bytes);

// Text that is not sanitized, as a type that no output takes for text by accident. json.h makes text of
// it.

struct Raw {
	std::string bytes; // any
};

} // namespace forktail::common
