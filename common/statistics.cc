// SPDX-License-Identifier: MIT
// Histograms of durations.
//
// As in HdrHistogram, the slots of one power of two have equal width.
#include "common/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace forktail::common
{

uint64_t Rank(uint64_t count, double percentile)
{
	// In millionths of a percent, as a whole number: in binary, 99.9 / 100 * 1000 is a little over 999.
	uint64_t millionths = static_cast<uint64_t>(std::llround(percentile * 1e6));
	unsigned __int128 scaled = static_cast<unsigned __int128>(count) * millionths + 99'999'999;
	uint64_t rank = static_cast<uint64_t>(scaled / 100'000'000);
	return std::clamp<uint64_t>(rank, count ? 1 : 0, count);
}

Histogram::Row &Histogram::RowAt(size_t row)
{
	if (row >= rows_.size())
		rows_.resize(row + 1);
	if (!rows_[row])
		rows_[row] = std::make_unique<Row>();
	return *rows_[row];
}

void Histogram::Add(uint64_t value, uint64_t times)
{
	const auto row = static_cast<size_t>(std::max<int>(std::bit_width(value) - kBits, 0));
	RowAt(row)[(row ? value >> (row - 1) : value) % kSlots] += times;
	count_ += times;
	max_ = std::max(max_, value);
}

void Histogram::Add(const Histogram &other)
{
	for (size_t row = 0; row < other.rows_.size(); row++)
		for (size_t i = 0; other.rows_[row] && i < kSlots; i++)
			RowAt(row)[i] += (*other.rows_[row])[i];
	count_ += other.count_;
	max_ = std::max(max_, other.max_);
}

uint64_t Histogram::Percentile(double percentile) const
{
	uint64_t left = Rank(count_, percentile);
	for (size_t row = 0; left && row < rows_.size(); row++)
		for (size_t i = 0; rows_[row] && i < kSlots; i++) {
			const uint64_t here = (*rows_[row])[i];
			if (here < left)
				left -= here;
			else
				return row ? std::min(((kSlots + i + 1) << (row - 1)) - 1, max_) : i;
		}
	return max_;
}

} // namespace forktail::common
