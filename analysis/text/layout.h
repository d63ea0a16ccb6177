// SPDX-License-Identifier: MIT
// How text is laid out on a terminal: how wide it looks, where it breaks, bars and colours. What is written
// to a file is the same without colours; without UTF-8 all of it is ASCII.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/timeline/causes.h"

namespace forktail::analysis
{

struct Style {
	size_t columns = 100; // of a line at most
	bool colour = false;
	bool unicode = false; // blocks that are drawn; names are as they are

	std::string Strong(const std::string &text) const;
	std::string Dim(const std::string &text) const;
	// In the colour of the cause's family. Colour is never all that tells causes apart.
	std::string Tinted(Cause cause, const std::string &text) const;
	std::string Alarming(const std::string &text) const;
	std::string Ellipsis() const { return unicode ? "…" : "..."; }
};

std::string Format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Columns that `text` takes: of letters that take two or none what they take. It has no escape codes.
size_t DisplayWidth(const std::string &text);
// `text` in at most `columns`, of which an ellipsis is part where it had to be cut.
std::string Ellipsized(const std::string &text, size_t columns, const Style &style);
// Filled up with spaces after it, or before it.
std::string PadRight(const std::string &text, size_t columns);
std::string PadLeft(const std::string &text, size_t columns);

// `text` broken at spaces, but for those between a number and its unit; the first line after `first` columns
// that are already there, others indented. Words that are longer than a line are cut apart.
std::string Wrap(const std::string &text, size_t first, size_t indent, size_t columns);
// What lies between line ends.
std::vector<std::string> Lines(const std::string &text);

// A bar of `fraction` (0..1) of `columns`, then spaces up to those. What is not nothing is seen.
std::string Bar(double fraction, size_t columns, const Style &style);

} // namespace forktail::analysis
