// SPDX-License-Identifier: MIT
// Texts in tests: what they contain, what a function printed, and lines that were broken for a screen.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace forktail::test
{

inline bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos;
}
// Any of the texts.
inline bool contains(const std::vector<std::string> &texts, const std::string &part)
{
	return std::any_of(texts.begin(), texts.end(),
			   [&](const auto &text) { return contains(text, part); });
}

// Checks that it does, and shows the text if not.
inline bool holds(const std::string &text, const std::string &part)
{
	INFO(text << "\nshould hold: " << part);
	const bool found = contains(text, part);
	CHECK(found);
	return found;
}

// What a function prints to a C stream.
inline std::string printed(const std::function<void(FILE *)> &print)
{
	char *text = nullptr;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	print(to);
	fclose(to);
	std::string all(text, size);
	free(text);
	return all;
}

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
