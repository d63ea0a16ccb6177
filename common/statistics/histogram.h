// SPDX-License-Identifier: MIT
// Percentiles of values that are too many to store.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace forktail::common
{

// The rank (1..count) of a percentile (0..100]. In ascending order, the value of this rank is the smallest
// one that at least that share of the values does not exceed. 0 for count 0.
uint64_t Rank(uint64_t count, double percentile);

// Values with an error below 1/128. Only powers of two that occur take memory.
class Histogram
{
public:
	void Add(uint64_t value);
	void Add(const Histogram &other);
	// The highest value of the slot of the percentile (0..100], at most the largest value; 0 if empty.
	uint64_t Percentile(double percentile) const;
	uint64_t count() const { return count_; }
	uint64_t max() const { return max_; }

private:
	static constexpr int kBits = 7;
	static constexpr uint64_t kSlots = 1 << kBits;
	using Row = std::array<uint32_t, kSlots>;

	Row &RowAt(size_t row);

	// Values below 2^kBits, then one row per power of two.
	std::vector<std::unique_ptr<Row>> rows_;
	uint64_t count_ = 0, max_ = 0;
};

} // namespace forktail::common
