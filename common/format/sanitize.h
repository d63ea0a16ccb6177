// SPDX-License-Identifier: MIT
// Sanitizes untrusted text: names that traced processes gave themselves, files, functions, text from servers
// and their logs. All text of a recording is sanitized (common/text/visible.h) when it is read into a Run, so
// that code that writes a Run's text to a terminal, JSON or a page need not check it.
#pragma once

#include <cstring>
#include <string>

#include "common/json/json_read.h"

namespace forktail::common
{

std::string Visible(const std::string &text);
// For several lines, which stay lines.
std::string VisibleLines(const std::string &text);

// The name of a thread in a record, up to its terminating zero, if any.
template <size_t N> std::string VisibleName(const char (&name)[N])
{
	return Visible(std::string(name, strnlen(name, N)));
}

// The same in its record: what is not printable becomes '?'.
template <size_t N> void MakeVisible(char (&name)[N])
{
	const size_t length = strnlen(name, N);
	for (int pass = 0; pass < 2 && VisibleName(name).size() != length; pass++)
		for (size_t i = 0; i < length; i++) {
			const auto c = static_cast<unsigned char>(name[i]);
			if (c < ' ' || c == 0x7f || (pass && c > 0x7f))
				name[i] = '?';
		}
}

// Like ParseJson and ParseObject, with every text and every member's name sanitized. Values nested deeper
// than anything that is written become null: recursive functions would run out of stack.
Json ParseVisible(const std::string &text);
Json ParseVisibleObject(const std::string &text);

} // namespace forktail::common
