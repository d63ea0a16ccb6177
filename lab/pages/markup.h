// SPDX-License-Identifier: MIT
// Escapes texts of scenarios and servers for HTML and Markdown.
#pragma once

#include <string>

namespace forktail::lab
{

std::string EscapeHtml(const std::string &text);     // in elements and in quoted attributes
std::string EscapeMarkdown(const std::string &text); // in a line or in a table's cell

} // namespace forktail::lab
