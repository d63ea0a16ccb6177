// SPDX-License-Identifier: MIT
// Divides whole nanoseconds in given proportions without rounding loss: the largest-remainder method.
// Everything that must sum exactly uses it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forktail::analysis
{

constexpr size_t kApportionMax = 128; // enough for the causes of two processes

// Apportion with intermediate numbers of this type; `total` is the sum of the weights, not 0.
template <typename Number>
void ApportionIn(uint64_t amount, const uint64_t *weight, size_t count, Number total, uint64_t *share)
{
	// A weight of 0 gets nothing.
	Number rest[kApportionMax];
	uint8_t at[kApportionMax];
	size_t weighing = 0;
	uint64_t given = 0;
	for (size_t i = 0; i < count; i++) {
		share[i] = 0;
		if (!weight[i])
			continue;
		Number product = static_cast<Number>(amount) * weight[i];
		share[i] = static_cast<uint64_t>(product / total);
		rest[weighing] = product % total;
		at[weighing++] = static_cast<uint8_t>(i);
		given += share[i];
	}
	// Fewer than `weighing` nanoseconds are left. Of equal remainders the first one gets one.
	for (uint64_t left = amount - given; left; left--) {
		size_t best = 0;
		for (size_t k = 1; k < weighing; k++)
			if (rest[k] > rest[best])
				best = k;
		share[at[best]]++;
		rest[best] = 0;
	}
}

// Sets share[i], i < count <= kApportionMax, to about amount * weight[i] / sum of weights (within 1), so that
// the shares sum to `amount`. All weights 0: everything goes to share[0].
inline void Apportion(uint64_t amount, const uint64_t *weight, size_t count, uint64_t *share)
{
	unsigned __int128 total = 0;
	uint64_t bits = amount;
	for (size_t i = 0; i < count; i++) {
		total += weight[i];
		bits |= weight[i];
	}
	if (total == 0) {
		for (size_t i = 0; i < count; i++)
			share[i] = i ? 0 : amount;
		return;
	}
	// The usual case: up to four seconds, products fit into one word.
	if (bits >> 32)
		ApportionIn<unsigned __int128>(amount, weight, count, total, share);
	else
		ApportionIn<uint64_t>(amount, weight, count, static_cast<uint64_t>(total), share);
}

} // namespace forktail::analysis
