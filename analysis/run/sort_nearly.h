// SPDX-License-Identifier: MIT
// Sorts almost sorted sequences, as recorded data is.
#pragma once

#include <algorithm>
#include <cstddef>

namespace forktail::analysis
{

// Insertion among the last few values. If that is not enough for many values, everything is sorted.
template <typename T, typename Before> void SortNearly(T *begin, T *end, Before before)
{
	size_t room = 8 * static_cast<size_t>(end - begin);
	for (T *at = begin; at != end; at++) {
		if (at == begin || !before(*at, at[-1]))
			continue;
		T moved = *at, *to = at;
		for (; to != begin && before(moved, to[-1]); to--) {
			*to = to[-1];
			if (room-- == 0) {
				to[-1] = moved;
				std::sort(begin, end, before);
				return;
			}
		}
		*to = moved;
	}
}

} // namespace forktail::analysis
