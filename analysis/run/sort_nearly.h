// SPDX-License-Identifier: MIT
// Sorting what comes nearly in order, as what is recorded does.
#pragma once

#include <algorithm>
#include <cstddef>

namespace forktail::analysis
{

// Each goes to its place among the last few; where that is far for many, all are sorted.
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
