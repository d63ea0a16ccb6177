// SPDX-License-Identifier: MIT
// Texts of scenarios and of servers inside HTML and Markdown, where they stay texts.
#pragma once

#include <string>

namespace forktail::lab
{

std::string EscapeHtml(const std::string &text);     // in elements and in quoted attributes
std::string EscapeMarkdown(const std::string &text); // in a line or in a table's cell

} // namespace forktail::lab
