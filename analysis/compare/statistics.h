// SPDX-License-Identifier: MIT
// The statistics of a comparison, as functions of numbers alone. Each is somebody's, who is named with it;
// docs/reference/diff-and-gate.md says why these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace forktail::analysis::compare
{

// From where to where a true value lies, 95 times in a hundred.
struct Interval {
	bool known = false;
	double low = 0, high = 0;
};

// As many pairs are gone through exactly; of more, a fixed sample of the possible signs is.
constexpr size_t kExactPairs = 20;

// One-sided p-value that the centre of the differences isn't above 0: the share of all ways to give them
// signs whose sum is at least the one seen. Under the hypothesis each difference is as likely of either sign,
// as when two runs of a pair are alike. Fisher, "The Design of Experiments" (1935), section 21. Of no
// difference: 1.
double SignFlipP(const std::vector<double> &differences);

// The interval of 95 % for the centre of the differences by inverting that test in both directions: its ends
// are means of subsets of the differences (Hartigan, "Using subsample values as typical values", 1969). Not
// known of fewer than 6: no p-value of fewer gets below 2.5 %.
Interval SignFlipInterval(const std::vector<double> &differences);
constexpr size_t kLeastPairs = 6;

// p-values of several hypotheses, each of which may be refused at a level if it is below that, so that the
// chance that any true one is refused is no more (Holm, "A simple sequentially rejective multiple test
// procedure", 1979).
std::vector<double> Holm(const std::vector<double> &p);

// How many successive values belong into a block of a circular block bootstrap (Politis and White, "Automatic
// block-length selection for the dependent bootstrap", 2004, with the correction of Patton, Politis and
// White, 2009). From 1 up.
double BlockLength(const std::vector<double> &series);

// What bounds the middle 95 % of values, by linear interpolation between neighbours; reorders them.
Interval MiddleOf(std::vector<double> *values);
double MedianOf(std::vector<double> values); // of none: 0
// The smallest value that at least this share of them doesn't exceed.
double QuantileOf(std::vector<double> values, double share);

// Repeatable random numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
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

// Draws of a circular block bootstrap: calls see(starts) for each, the first of each block of `length` of
// `count` values that are taken instead of them; what is beyond the end goes on at the beginning (Politis and
// Romano, "A circular block-resampling procedure for stationary data", 1992).
void CircularBlocks(size_t count, size_t length, size_t draws, Random *random,
		    const std::function<void(const std::vector<size_t> &starts)> &see);

} // namespace forktail::analysis::compare
