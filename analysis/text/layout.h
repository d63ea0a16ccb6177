// SPDX-License-Identifier: MIT
// Text layout for a terminal: width, line breaks, bars and colours. Output to a file has no colours. Without
// a UTF-8 locale it is ASCII.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/timeline/causes.h"

namespace forktail::analysis
{

struct Style {
	size_t columns = 100; // maximum width of a line
	bool colour = false;
	bool unicode = false; // draw with Unicode blocks; names are printed unchanged

	std::string Strong(const std::string &text) const;
	std::string Dim(const std::string &text) const;
	// In the colour of the cause's family. Causes are never distinguished by colour alone.
	std::string Tinted(Cause cause, const std::string &text) const;
	std::string Alarming(const std::string &text) const;
	std::string Ellipsis() const { return unicode ? "…" : "..."; }
};

std::string Format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The width of `text` in columns; characters may be 0 or 2 columns wide. The text must have no escape codes.
size_t DisplayWidth(const std::string &text);
// `text` cut to at most `columns`, including the ellipsis of a cut.
std::string Ellipsized(const std::string &text, size_t columns, const Style &style);
// Padded with spaces, after or before the text.
std::string PadRight(const std::string &text, size_t columns);
std::string PadLeft(const std::string &text, size_t columns);

// Breaks `text` at spaces, but not between a number and its unit. The first line begins after `first`
// columns, others are indented. Words longer than a line are split.
std::string Wrap(const std::string &text, size_t first, size_t indent, size_t columns);
// Splits text at line ends.
std::vector<std::string> Lines(const std::string &text);

// A bar of `fraction` (0..1) of `columns`, padded with spaces. A fraction above 0 has at least one step.
std::string Bar(double fraction, size_t columns, const Style &style);

} // namespace forktail::analysis
