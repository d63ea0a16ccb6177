// SPDX-License-Identifier: MIT
// A screen of `forktail watch` as lines of text: pure functions, so that what stands where is tested without
// a terminal. Colour repeats what words and lengths say already; without Unicode all that is drawn is ASCII.
#pragma once

#include <string>
#include <vector>

#include "analysis/text/layout.h"
#include "frame.h"

namespace forktail::live::watch
{

enum class Look : uint8_t {
	Plain,
	Strong,
	Dim,
	Alarm,
	Tinted,	 // in the cause's colour
	Chosen,	 // the second that is shown, in the strip
	Reverse, // the lines at the top and at the bottom
};

struct Words {
	std::string text;
	Look look = Look::Plain;
	analysis::Cause cause = analysis::Cause::Unknown; // of Tinted
};
using Line = std::vector<Words>;

// No wider than `columns`, at most `rows` of them. From 40 x 10 on all that matters has a place; what has
// none where there is less is left out from the end.
std::vector<Line> LayOut(const Frame &frame, size_t columns, size_t rows, const analysis::Style &style);
// What the keys do.
std::vector<Line> LayOutHelp(size_t columns, size_t rows);
// The same second as text for a pipe: without the strip and the keys, as long as it is.
std::vector<Line> LayOutOnce(const Frame &frame, size_t columns, const analysis::Style &style);

// Seconds that the strip has room for.
size_t StripSeconds(size_t columns);

size_t WidthOf(const Line &line);
// Without looks.
std::string TextOf(const Line &line);

} // namespace forktail::live::watch
