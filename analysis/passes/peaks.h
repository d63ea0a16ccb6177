// SPDX-License-Identifier: MIT
// The longest latency in each of many equal intervals of a run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "intervals.h"

namespace forktail::analysis
{

class Peaks
{
public:
	void Add(uint64_t due_ns, uint64_t latency_ns) { peaks_.At(due_ns).Merge({latency_ns}); }
	void Merge(const Peaks &other) { peaks_.Merge(other.peaks_); }
	bool empty() const { return peaks_.empty(); }
	// The longest latency of requests due in each of `columns` equal parts of [from_ns, to_ns); 0: none.
	// An interval that overlaps several parts counts in each.
	std::vector<uint64_t> Over(uint64_t from_ns, uint64_t to_ns, size_t columns) const
	{
		std::vector<uint64_t> longest(columns);
		const double width = static_cast<double>(std::max<uint64_t>(to_ns - from_ns, 1)) /
				     static_cast<double>(columns);
		auto column_of = [&](uint64_t t_ns) {
			double column = t_ns <= from_ns ? 0 : static_cast<double>(t_ns - from_ns) / width;
			return std::min(static_cast<size_t>(column), columns - 1);
		};
		for (size_t i = 0; i < peaks_.size(); i++) {
			const uint64_t begin = peaks_.begin_ns(i), end = begin + (peaks_.length_ns() - 1);
			if (!peaks_[i].latency_ns || begin >= to_ns || end < from_ns)
				continue;
			size_t last = column_of(end);
			for (size_t c = column_of(begin); c <= last; c++)
				longest[c] = std::max(longest[c], peaks_[i].latency_ns);
		}
		return longest;
	}

private:
	struct Peak {
		uint64_t latency_ns = 0;
		void Merge(const Peak &other) { latency_ns = std::max(latency_ns, other.latency_ns); }
	};
	Intervals<Peak> peaks_;
};

} // namespace forktail::analysis
