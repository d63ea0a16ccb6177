// SPDX-License-Identifier: MIT
// Figures as tables and charts print them: in the unit of their column, with the unit in the column's title.
#pragma once

#include <string>

#include "lab/scenario/scenario.h"

namespace forktail::lab
{

// "ms"; "" for plain numbers, and for bytes, which choose their unit by size.
std::string UnitOf(Format format);

// A figure (ns, bytes, percent) in that unit.
double InUnit(double figure, Format format);

// "1,204", "0.57", "84.0 MB"; three significant digits unless the format has fixed decimals.
std::string FormatFigure(double figure, Format format);

// A published figure is already in the column's unit (bytes: in bytes) and is printed with its own digits.
std::string FormatPublished(double published, Format format);

// A number with `decimals` decimals and commas between thousands.
std::string FormatDecimals(double number, int decimals);

// "average" -> "average, ms", unless the title contains the unit.
std::string WithUnit(const std::string &title, Format format);

} // namespace forktail::lab
