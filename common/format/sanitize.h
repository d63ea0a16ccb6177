// SPDX-License-Identifier: MIT
// Sanitizes untrusted text: names that traced processes gave themselves, files, functions, text from servers
// and their logs. All text of a recording is sanitized (common/text/visible.h) when it is read into a Run, so
// that code that writes a Run's text to a terminal, JSON or a page need not check it.
#pragma once

#include <cstring>
#include <string>

#include "common/json/json_read.h"
#include "raw.h"

namespace forktail::common
{

std::string Visible(const std::string &text);
// For several lines, which stay lines.
std::string VisibleLines(const std::string &text);

// A name in a record (ft_comm, ft_role: recording/format.h), up to its terminating zero, if any.
template <typename Name> std::string VisibleName(const Name &name)
{
	return Visible(std::string(name.raw, strnlen(name.raw, sizeof name.raw)));
}

// Like ParseJson and ParseObject, with every text and every member's name sanitized. Values nested deeper
// than anything that is written become null: recursive functions would run out of stack.
Json ParseVisible(const Raw &text);
Json ParseVisibleObject(const Raw &text);

} // namespace forktail::common
