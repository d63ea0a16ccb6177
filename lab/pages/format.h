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

// "1,204", "0.57", "84.0 MB"; three significant digits where the format doesn't say how many decimals.
std::string FormatFigure(double figure, Format format);

// A published figure is in the column's unit already (bytes: in bytes), and is printed with the digits it
// has.
std::string FormatPublished(double published, Format format);

// With so many decimals and with commas between thousands.
std::string FormatDecimals(double number, int decimals);

// "average" -> "average, ms", unless the unit stands in the title already.
std::string WithUnit(const std::string &title, Format format);

} // namespace forktail::lab
