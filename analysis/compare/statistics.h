// SPDX-License-Identifier: MIT
// The statistics of a comparison, as pure functions of numbers. Each names its source;
// docs/reference/diff-and-gate.md has the reasons for the choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace forktail::analysis::compare
{

// An interval that contains the true value in 95 of 100 cases.
struct Interval {
	bool known = false;
	double low = 0, high = 0;
};

// Up to this many pairs are enumerated exactly; for more, a fixed sample of the possible signs is used.
constexpr size_t kExactPairs = 20;

// One-sided p-value that the centre of the differences is not above 0: the share of all sign assignments
// whose sum is at least the observed one. Under the hypothesis either sign is equally likely for each
// difference, as if the two runs of a pair were alike. Fisher, "The Design of Experiments" (1935), section
// 21. Without differences: 1.
double SignFlipP(const std::vector<double> &differences);

// The 95 % interval for the centre of the differences, by inverting that test in both directions. Its ends
// are means of subsets of the differences (Hartigan, "Using subsample values as typical values", 1969).
// Unknown for fewer than 6 differences, whose p-value cannot get below 2.5 %.
Interval SignFlipInterval(const std::vector<double> &differences);
constexpr size_t kLeastPairs = 6;

// Corrected p-values of several hypotheses. Rejecting those below a level rejects any true one with no more
// than that probability (Holm, "A simple sequentially rejective multiple test procedure", 1979).
std::vector<double> Holm(const std::vector<double> &p);

// The number of successive values in a block of a circular block bootstrap, at least 1 (Politis and White,
// "Automatic block-length selection for the dependent bootstrap", 2004, with the correction of Patton,
// Politis and White, 2009).
double BlockLength(const std::vector<double> &series);

// The bounds of the middle 95 % of values, by linear interpolation between neighbours. Reorders the values.
Interval MiddleOf(std::vector<double> *values);
double MedianOf(std::vector<double> values); // 0 without values
// The smallest value that at least this share of the values does not exceed.
double QuantileOf(std::vector<double> values, double share);

// Reproducible random numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014).
class Random
{
public:
	explicit Random(uint64_t seed) : state_(seed) {}
	uint64_t Next()
	{
		uint64_t z = state_ += 0x9e3779b97f4a7c15;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		return z ^ z >> 31;
	}
	// From 0 to limit - 1.
	size_t Below(size_t limit)
	{
		return static_cast<size_t>(static_cast<unsigned __int128>(Next()) * limit >> 64);
	}
	// In [0, 1).
	double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

private:
	uint64_t state_;
};

// Draws of a circular block bootstrap. Calls see(starts) for each draw, with the first index of each block of
// `length` out of `count` values. Indices beyond the end wrap around to the beginning (Politis and Romano, "A
// circular block-resampling procedure for stationary data", 1992).
void CircularBlocks(size_t count, size_t length, size_t draws, Random *random,
		    const std::function<void(const std::vector<size_t> &starts)> &see);

} // namespace forktail::analysis::compare
