// SPDX-License-Identifier: MIT
// Untrusted JSON and text: read without exceptions, and made printable.
#pragma once

#include <cstdint>
#include <cstring>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/format.h"

namespace forktail::common
{

// Reads untrusted JSON: a missing or mistyped member becomes its default, never an exception.

using Json = nlohmann::json;

// Accepts any text. The result is discarded (is_discarded()) if it is not JSON. Compiled once, here:
// Json::parse takes seconds to compile in each file that calls it.
Json ParseJson(const std::string &text);
// An object with this member of a JSON object only. The others, which may be large, are not stored. Discarded
// if the text is not JSON.
Json ParseMember(std::istream &text, const std::string &key);
// An object; empty if the text is not a JSON object.
Json ParseObject(const std::string &text);

// nullptr: no such member.
const Json *Member(const Json &j, const char *key);
// A value as text: strings unchanged, anything else as JSON.
std::string AsText(const Json &j);

std::string Text(const Json &j, const char *key);
double Number(const Json &j, const char *key);
// A whole number of at least 0; anything else is 0.
uint64_t Whole(const Json &j, const char *key);
bool Flag(const Json &j, const char *key);
std::vector<std::string> Texts(const Json &j, const char *key);
std::map<std::string, std::string> TextMap(const Json &j, const char *key);

// Sanitizes untrusted text: names that traced processes gave themselves, files, functions, text from servers
// and their logs. All text of a recording is sanitized (common/text.h) when it is read into a Run, so
// that code that writes a Run's text to a terminal, JSON or a page need not check it.

std::string Visible(const std::string &text);
// For several lines, which stay lines.
std::string VisibleLines(const std::string &text);

// A name in a record (ft_comm, ft_role: recording/recording.h), up to its terminating zero, if any.
template <typename Name> std::string VisibleName(const Name &name)
{
	return Visible(std::string(name.raw, strnlen(name.raw, sizeof name.raw)));
}

// Like ParseJson and ParseObject, with every text and every member's name sanitized. Values nested deeper
// than anything that is written become null: recursive functions would run out of stack.
Json ParseVisible(const Raw &text);
Json ParseVisibleObject(const Raw &text);

} // namespace forktail::common
