// SPDX-License-Identifier: MIT
// One of two files that define the same names, which definitions.py must refuse.
#pragma once

namespace forktail
{

struct Series {
	int points[8];
};

template <typename T> int Sum(const T &series, int begin = 0)
{
	return series.points[begin] + series.points[begin + 1];
}

namespace lab
{

enum class Step { First, Last }; // another name than forktail::Step

} // namespace lab

} // namespace forktail
