// SPDX-License-Identifier: MIT
// One cell for each of many equal intervals of a run, in bounded memory. If a run needs more intervals than
// there are, the intervals become twice as long, as often as necessary. They begin at multiples of their
// length, so that the results of several workers join exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace forktail::analysis
{

// A cell's initial value says nothing, and cell.Merge(other) adds what another cell says.
template <typename Cell> class Intervals
{
public:
	static constexpr uint64_t kIntervals = 4096; // maximum number

	Cell &At(uint64_t t_ns)
	{
		const uint64_t at = t_ns >> shift_;
		if (at < first_ || at - first_ >= cells_.size())
			MakeRoom(t_ns);
		return cells_[(t_ns >> shift_) - first_];
	}
	void Merge(const Intervals &other)
	{
		while (shift_ < other.shift_)
			Double();
		for (size_t i = 0; i < other.cells_.size(); i++)
			At((other.first_ + i) << other.shift_).Merge(other.cells_[i]);
	}
	bool empty() const { return cells_.empty(); }
	size_t size() const { return cells_.size(); }
	uint64_t length_ns() const { return 1ull << shift_; }
	uint64_t begin_ns(size_t i) const { return (first_ + i) << shift_; }
	const Cell &operator[](size_t i) const { return cells_[i]; }

private:
	void MakeRoom(uint64_t t_ns)
	{
		if (cells_.empty())
			first_ = t_ns >> shift_;
		auto last = [&] { return first_ + std::max<uint64_t>(cells_.size(), 1) - 1; };
		while (std::max(t_ns >> shift_, last()) - std::min(t_ns >> shift_, first_) >= kIntervals)
			Double();
		const uint64_t at = t_ns >> shift_;
		if (at < first_) {
			cells_.insert(cells_.begin(), first_ - at, Cell());
			first_ = at;
		}
		if (at - first_ >= cells_.size())
			cells_.resize(at - first_ + 1);
	}
	void Double()
	{
		std::vector<Cell> doubled;
		const uint64_t first = first_ >> 1;
		for (size_t i = 0; i < cells_.size(); i++) {
			size_t to = ((first_ + i) >> 1) - first;
			if (to == doubled.size())
				doubled.emplace_back();
			doubled[to].Merge(cells_[i]);
		}
		cells_ = std::move(doubled);
		first_ = first;
		shift_++;
	}

	uint32_t shift_ = 20; // about 1 ms at first
	uint64_t first_ = 0;  // number of the first interval
	std::vector<Cell> cells_;
};

} // namespace forktail::analysis
