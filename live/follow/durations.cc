// SPDX-License-Identifier: MIT
// A duration of b bits keeps its upper six, as in HdrHistogram: the slots of one power of two have equal
// width.
#include "durations.h"

#include <algorithm>
#include <cmath>

namespace forktail::live
{

void DurationSpread::Add(uint64_t ns)
{
	constexpr uint64_t longest = (uint64_t{1} << kMostBits) - 1;
	const uint64_t v = std::min(ns, longest);
	const unsigned bits = static_cast<unsigned>(std::bit_width(v));
	const unsigned shift = bits > kSubBits + 1 ? bits - kSubBits - 1 : 0;
	slots_[(size_t{shift} << kSubBits) + (v >> shift)]++;
	count_++;
	max_ns_ = std::max(max_ns_, ns);
}

void DurationSpread::Add(const DurationSpread &other)
{
	for (size_t i = 0; i < slots_.size(); i++)
		slots_[i] += other.slots_[i];
	count_ += other.count_;
	max_ns_ = std::max(max_ns_, other.max_ns_);
}

uint64_t DurationSpread::Percentile(double p) const
{
	const double rank = std::ceil(p * static_cast<double>(count_));
	uint64_t seen = 0;
	for (size_t i = 0; i < slots_.size() && count_; i++) {
		seen += slots_[i];
		if (static_cast<double>(seen) < std::max(rank, 1.0))
			continue;
		const size_t shift = i >> kSubBits ? (i >> kSubBits) - 1 : 0;
		const uint64_t upper = i - (shift << kSubBits) + 1;
		return std::min((upper << shift) - 1, max_ns_);
	}
	return max_ns_;
}

} // namespace forktail::live
