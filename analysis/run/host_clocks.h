// SPDX-License-Identifier: MIT
// Compares the clocks of several hosts by the round trips that forktail-clock recorded, and maps one host's
// times to another's clock. docs/how-it-works/clocks.md has the method and its sources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recording/recording.h"

namespace forktail::analysis
{

// Maps times of one clock to another, with an uncertainty. It is linear between knots. Before the first and
// after the last knot it continues at the same rate, and the bound grows. Without knots both clocks are the
// same.
class ClockMap
{
public:
	struct Knot {
		uint64_t t_ns;	   // of the clock that is mapped
		int64_t offset_ns; // the other clock minus this one
		uint64_t bound_ns; // uncertainty
	};
	ClockMap() = default;
	// Knots in the order of time. Knots that would make times run backwards, which only a wrong recording
	// has, are adjusted, and the bound grows accordingly.
	explicit ClockMap(const std::vector<Knot> &knots);

	bool same() const { return knots_.empty(); }
	// Monotonic. 0 and values beyond any clock are no times and stay as they are.
	uint64_t Map(uint64_t t_ns) const;
	uint64_t BoundAt(uint64_t t_ns) const;
	// The largest bound in [from_ns, to_ns].
	uint64_t Bound(uint64_t from_ns, uint64_t to_ns) const;
	// By how many millionths the other clock runs faster; 0 for the same clock.
	double DriftPpm() const;
	const std::vector<Knot> &knots() const { return knots_; }

	ClockMap Inverse() const;
	// This map followed by `next`, which maps from this one's target clock.
	ClockMap Then(const ClockMap &next) const;

private:
	size_t After(uint64_t t_ns) const;
	int64_t OffsetAt(uint64_t t_ns) const;
	std::vector<Knot> knots_; // none, or at least two, by time
};

// Fits a map from the probing host's clock to the peer's. Samples may be in any order; impossible ones are
// ignored and counted in *left_out. Without valid samples the map is that of one clock.
ClockMap FitClock(std::vector<ft_probe> samples, uint64_t *left_out);

// Round trips between two clocks, by the clocks' names.
struct ClockPair {
	std::string from, to;
	std::vector<ft_probe> samples;
};
// A clock and its map to the reference.
struct ClockPath {
	std::string clock;
	ClockMap map; // to the reference
	size_t samples = 0;
};
// All clocks that round trips connect with the reference, directly or via others. The first is the reference.
std::vector<ClockPath> ConnectClocks(const std::string &reference, std::vector<ClockPair> pairs);

} // namespace forktail::analysis
