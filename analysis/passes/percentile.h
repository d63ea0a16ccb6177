// SPDX-License-Identifier: MIT
// Percentiles: exact ones by selection, of values in memory or of values that are read repeatedly, and a fine
// histogram for millions of derived values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "analysis/blame/blame.h"
#include "common/statistics/histogram.h"

namespace forktail::analysis
{

using common::Rank;

// Sets p99 .. max of `count` values. The `top_count` largest are given (and reordered), which must include
// the rank of p99.
void TopPercentiles(uint64_t *top, size_t top_count, uint64_t count, Latencies *out);

// Counts values in buckets 1/2048 wide relative to the value: two values of a bucket differ by at most 0.05
// %.
struct LogHistogram {
	static constexpr int kBits = 11;
	std::vector<uint32_t> slots = std::vector<uint32_t>(static_cast<size_t>(64 - kBits + 1) << kBits);
	uint64_t count = 0;
	uint64_t max = 0;

	static size_t Slot(uint64_t value)
	{
		int above = std::bit_width(value | ((1u << kBits) - 1)) - kBits;
		return (static_cast<size_t>(above) << kBits) + (value >> above);
	}
	static uint64_t Floor(size_t slot)
	{
		return static_cast<uint64_t>(slot & ((1u << kBits) - 1)) << (slot >> kBits);
	}
	void Add(uint64_t value)
	{
		slots[Slot(value)]++;
		count++;
		max = value > max ? value : max;
	}
	void Merge(const LogHistogram &other);
	// The slot of a rank (1..count), and the number of values in slots before it.
	size_t SlotOfRank(uint64_t rank, uint64_t *before) const;
	// The lowest value of the percentile's bucket; 0 if empty.
	uint64_t PercentileFloor(double percentile) const;
};

// The values of the ranks nq -+ 1.96 sqrt(nq(1-q)): the normal approximation of the binomial distribution of
// how many values are below a percentile (Conover, Practical Nonparametric Statistics, "quantile test").
PercentileRange RangeOf(const LogHistogram &sample, double percentile);

// The same for several histograms together.
uint64_t PercentileFloor(const std::vector<const LogHistogram *> &together, double percentile);

// Finds the exact values of some ranks. The values are read once for a histogram, and then again for those in
// the histogram's slots of the ranks. Few such values are stored; many are counted in finer slots in each
// further pass. Munro and Paterson, "Selection and sorting with limited storage" (1980), bound the number of
// passes; here it is usually one.
class RankFinder
{
public:
	// `ranks`: 1..all.count each. If all.count is 0, there is nothing to find.
	RankFinder(const LogHistogram &all, const std::vector<uint64_t> &ranks);
	// Whether all ranks are found.
	bool Done() const;
	void Add(uint64_t value)
	{
		if (value >= low_ && value <= high_)
			AddInside(value);
	}
	// Ends a pass over all values.
	void EndPass();
	// The value of ranks[i], in the constructor's order.
	uint64_t Value(size_t i) const { return wanted_[i].value; }

private:
	struct Wanted {
		uint64_t rank; // the rank among values in [low, high]
		uint64_t low, high;
		bool keep; // store values; else count by slots of 2^shift
		uint32_t shift;
		std::vector<uint64_t> values;
		std::vector<uint32_t> counts;
		bool known;
		uint64_t value;
	};
	void AddInside(uint64_t value);
	void Narrow(Wanted *w, uint64_t low, uint64_t high, uint64_t rank, uint64_t count);
	void Cover();

	std::vector<Wanted> wanted_;
	uint64_t low_ = 1, high_ = 0; // range of all ranks not found yet
};

// The default percentile from which requests are slow.
constexpr double kUsualThreshold = 99;

// The percentiles of a run, and one more on request, of values that are read about twice.
class Percentiles
{
public:
	Percentiles(const LogHistogram &all, unsigned __int128 sum, double further)
	    : finder_(all, RanksOf(all.count, further))
	{
		found_.max = all.max;
		if (all.count)
			found_.mean = static_cast<double>(sum) / static_cast<double>(all.count);
	}
	void Add(uint64_t value) { finder_.Add(value); }
	// False: the values must be read once more.
	bool EndPass()
	{
		finder_.EndPass();
		return finder_.Done();
	}
	Latencies Result() const
	{
		Latencies l = found_;
		uint64_t *const to[] = {&l.p50, &l.p90, &l.p99, &l.p99_9, &l.p99_99};
		for (size_t i = 0; i < std::size(to); i++)
			*to[i] = finder_.Value(i);
		return l;
	}
	uint64_t Further() const { return finder_.Value(std::size(kPoints)); }

private:
	static constexpr double kPoints[] = {50, 90, 99, 99.9, 99.99};
	static std::vector<uint64_t> RanksOf(uint64_t count, double further)
	{
		std::vector<uint64_t> ranks;
		for (double p : kPoints)
			ranks.push_back(Rank(count, p));
		ranks.push_back(Rank(count, further));
		return ranks;
	}

	RankFinder finder_;
	Latencies found_;
};

} // namespace forktail::analysis
