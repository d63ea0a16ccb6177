// SPDX-License-Identifier: MIT
// Text of others: names that traced processes gave themselves, files, functions, what servers and their logs
// said. In recordings all of it becomes visible (common/text/visible.h) on its way into a Run, so that nobody
// who writes a Run's text to a terminal, into JSON or a page has to think of what may be in it.
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

// Like ParseJson and ParseObject, with every text and every member's name sanitized. Values nested deeper
// than anything that is written become null: recursive functions would run out of stack.
Json ParseVisible(const std::string &text);
Json ParseVisibleObject(const std::string &text);

} // namespace forktail::common
