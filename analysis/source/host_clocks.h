// SPDX-License-Identifier: MIT
// How the clocks of several hosts compare, by the round trips that forktail-clock recorded, and with that one
// host's times told in another's. docs/how-it-works/clocks.md has the method and where it is from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recording/recording.h"

namespace forktail::analysis
{

// Times of one clock in another, and how far off that may be. Straight between knots, and beyond the first
// and last one as it is next to them, where the bound grows. Without knots: the same clock.
class ClockMap
{
public:
	struct Knot {
		uint64_t t_ns;	   // of the clock that is mapped
		int64_t offset_ns; // what the other is ahead by then
		uint64_t bound_ns; // how far from the truth that may be
	};
	ClockMap() = default;
	// By time. What would have times run backwards, as only a recording that lies can, is bent until they
	// don't, and the bound says so.
	explicit ClockMap(const std::vector<Knot> &knots);

	bool same() const { return knots_.empty(); }
	// Never backwards. 0 and what no clock reaches stay as they are: they are no times.
	uint64_t Map(uint64_t t_ns) const;
	uint64_t BoundAt(uint64_t t_ns) const;
	// The largest of all in [from_ns, to_ns].
	uint64_t Bound(uint64_t from_ns, uint64_t to_ns) const;
	// By how many millionths the other runs faster; 0 of the same clock.
	double DriftPpm() const;
	const std::vector<Knot> &knots() const { return knots_; }

	ClockMap Inverse() const;
	// This one, and then `next`, of the clock that this one leads to.
	ClockMap Then(const ClockMap &next) const;

private:
	size_t After(uint64_t t_ns) const;
	int64_t OffsetAt(uint64_t t_ns) const;
	std::vector<Knot> knots_; // none, or at least two, by time
};

// Fits a map from the probing host's clock to the peer's; samples in any order, those that make no sense are
// left out and counted in *left_out. The same clock's map if none is left.
ClockMap FitClock(std::vector<ft_probe> samples, uint64_t *left_out);

// Round trips between two clocks, by their names.
struct ClockPair {
	std::string from, to;
	std::vector<ft_probe> samples;
};
// A clock as it compares with the reference.
struct ClockPath {
	std::string clock;
	ClockMap map; // to the reference
	size_t samples = 0;
};
// Every clock that round trips connect with the reference, over others if need be; the reference is the
// first.
std::vector<ClockPath> ConnectClocks(const std::string &reference, std::vector<ClockPair> pairs);

} // namespace forktail::analysis
