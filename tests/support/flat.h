// SPDX-License-Identifier: MIT
// Text that was broken into lines for a screen.
#pragma once

#include <sstream>
#include <string>

namespace forktail::test
{

// The words of a text with one space after each.
inline std::string flat(const std::string &text)
{
	std::string words;
	std::istringstream in(text);
	for (std::string word; in >> word;)
		words += word + " ";
	return words;
}

} // namespace forktail::test
