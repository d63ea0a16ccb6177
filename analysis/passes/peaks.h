// SPDX-License-Identifier: MIT
// The longest latency in each of many equal intervals of a run, in bounded memory. If the requests need more
// intervals than there are, the intervals become twice as long, as often as necessary. They begin at
// multiples of their length, so that the results of several workers join exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace forktail::analysis
{

class Peaks
{
public:
	static constexpr uint64_t kIntervals = 4096; // maximum number

	void Add(uint64_t due_ns, uint64_t latency_ns)
	{
		const uint64_t at = due_ns >> shift_;
		if (at < first_ || at - first_ >= longest_.size())
			MakeRoom(due_ns);
		uint64_t &longest = longest_[(due_ns >> shift_) - first_];
		longest = std::max(longest, latency_ns);
	}
	void Merge(const Peaks &other)
	{
		while (shift_ < other.shift_)
			Double();
		for (size_t i = 0; i < other.longest_.size(); i++)
			if (other.longest_[i])
				Add((other.first_ + i) << other.shift_, other.longest_[i]);
	}
	bool empty() const { return longest_.empty(); }
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
		for (size_t i = 0; i < longest_.size(); i++) {
			const uint64_t begin = (first_ + i) << shift_, end = begin + ((1ull << shift_) - 1);
			if (!longest_[i] || begin >= to_ns || end < from_ns)
				continue;
			size_t last = column_of(end);
			for (size_t c = column_of(begin); c <= last; c++)
				longest[c] = std::max(longest[c], longest_[i]);
		}
		return longest;
	}

private:
	void MakeRoom(uint64_t due_ns)
	{
		if (longest_.empty())
			first_ = due_ns >> shift_;
		auto last = [&] { return first_ + std::max<uint64_t>(longest_.size(), 1) - 1; };
		while (std::max(due_ns >> shift_, last()) - std::min(due_ns >> shift_, first_) >= kIntervals)
			Double();
		const uint64_t at = due_ns >> shift_;
		if (at < first_) {
			longest_.insert(longest_.begin(), first_ - at, 0);
			first_ = at;
		}
		if (at - first_ >= longest_.size())
			longest_.resize(at - first_ + 1);
	}
	void Double()
	{
		std::vector<uint64_t> doubled;
		const uint64_t first = first_ >> 1;
		for (size_t i = 0; i < longest_.size(); i++) {
			size_t to = ((first_ + i) >> 1) - first;
			if (to == doubled.size())
				doubled.push_back(0);
			doubled[to] = std::max(doubled[to], longest_[i]);
		}
		longest_ = std::move(doubled);
		first_ = first;
		shift_++;
	}

	uint32_t shift_ = 20; // about 1 ms at first
	uint64_t first_ = 0;  // number of the first interval
	std::vector<uint64_t> longest_;
};

} // namespace forktail::analysis
