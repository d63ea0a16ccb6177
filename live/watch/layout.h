// SPDX-License-Identifier: MIT
// A screen of `forktail watch` as lines of text. Pure functions, so that tests need no terminal. Colors only
// repeat what text and lengths show; without Unicode everything is ASCII.
#pragma once

#include <string>
#include <vector>

#include "analysis/text.h"
#include "frame.h"

namespace forktail::live::watch
{

enum class Look : uint8_t {
	Plain,
	Strong,
	Dim,
	Alarm,
	Tinted,	 // in the color of the cause
	Chosen,	 // the second that is shown, in the strip
	Reverse, // the lines at the top and at the bottom
};

struct Words {
	std::string text;
	Look look = Look::Plain;
	analysis::Cause cause = analysis::Cause::Unknown; // of Tinted
};
using Line = std::vector<Words>;

// At most `columns` wide and `rows` high. From 40 x 10 on all important lines fit; on smaller screens the
// last lines are dropped.
std::vector<Line> LayOut(const Frame &frame, size_t columns, size_t rows, const analysis::Style &style);
// The help screen.
std::vector<Line> LayOutHelp(size_t columns, size_t rows);
// The second as text for a pipe: without strip and keys, of any length.
std::vector<Line> LayOutOnce(const Frame &frame, size_t columns, const analysis::Style &style);

// Number of seconds that fit in the strip.
size_t StripSeconds(size_t columns);

size_t WidthOf(const Line &line);
// Without looks.
std::string TextOf(const Line &line);

} // namespace forktail::live::watch
