// SPDX-License-Identifier: MIT
// Random timelines for properties of every timeline: pieces of one cause and mixes, mostly idle time and own
// code.
#pragma once

#include <random>

#include "analysis/timeline.h"

namespace forktail::test
{

using Random = std::mt19937_64;

constexpr uint64_t kMs = 1'000'000;

inline uint64_t Pick(Random &random, uint64_t low, uint64_t high)
{
	return std::uniform_int_distribution<uint64_t>(low, high)(random);
}

// Mostly idle time and own code, like servers.
inline forktail::analysis::Cause RandomCause(Random &random)
{
	switch (Pick(random, 0, 4)) {
	case 0:
		return forktail::analysis::Cause::ServerBusy;
	case 1:
		return forktail::analysis::Cause::Network;
	case 2:
	case 3:
		return forktail::analysis::Cause::Idle;
	default:
		return static_cast<forktail::analysis::Cause>(
		    Pick(random, 0, forktail::analysis::kTimelineCauses - 1));
	}
}

inline forktail::analysis::Timeline RandomTimeline(Random &random, uint64_t start_ns, uint64_t length_ns)
{
	forktail::analysis::Timeline t;
	uint64_t longest = Pick(random, 1, 3) == 1 ? 5 * kMs : kMs / 4;
	for (uint64_t at = start_ns; at < start_ns + length_ns; at += Pick(random, 1, longest)) {
		forktail::analysis::Piece piece = {at, 0, forktail::analysis::kNoMix, RandomCause(random)};
		if (Pick(random, 0, 2)) {
			piece.span = forktail::analysis::kNoSpan;
			piece.mix = static_cast<uint32_t>(t.mixes.size());
			piece.cause = forktail::analysis::Cause::ServerBusy;
			forktail::analysis::Mix mix = {static_cast<uint32_t>(t.mix_parts.size()),
						       static_cast<uint32_t>(Pick(random, 1, 6)), 0};
			for (uint32_t i = 0; i < mix.part_count; i++) {
				t.mix_parts.push_back({RandomCause(random), Pick(random, 1, kMs)});
				mix.total_ns += t.mix_parts.back().ns;
			}
			t.mixes.push_back(mix);
		}
		t.pieces.push_back(piece);
	}
	t.pieces.push_back({start_ns + length_ns, forktail::analysis::kNoSpan, forktail::analysis::kNoMix,
			    forktail::analysis::Cause::Unknown});
	forktail::analysis::IndexTimeline(&t);
	return t;
}

} // namespace forktail::test
