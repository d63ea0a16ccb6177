// SPDX-License-Identifier: MIT
// See statistics.h.
#include "statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace forktail::analysis::compare
{

namespace
{

constexpr size_t kSampledSigns = 1 << 18; // for more pairs than are enumerated exactly
constexpr uint64_t kSignSeed = 1;
constexpr double kTail = 0.025; // share outside an interval, on each side

// Calls see(sum, number) for every subset, the empty one first, with the sum and number of its members.
// Neighbours in Gray code order differ in one member. The sum is recomputed regularly, so that rounding
// errors do not accumulate.
template <typename See> void ForSubsets(const std::vector<double> &values, See see)
{
	const uint64_t subsets = uint64_t{1} << values.size();
	double sum = 0;
	for (uint64_t i = 0; i < subsets; i++) {
		uint64_t members = i ^ i >> 1;
		if (i % 64 == 0) {
			sum = 0;
			for (size_t v = 0; v < values.size(); v++)
				sum += members >> v & 1 ? values[v] : 0;
		} else {
			int changed = std::countr_zero(i);
			double value = values[static_cast<size_t>(changed)];
			sum += members >> changed & 1 ? value : -value;
		}
		see(sum, std::popcount(members));
	}
}

// The same for a sample of subsets, including the empty one.
template <typename See> void ForSomeSubsets(const std::vector<double> &values, See see)
{
	Random random(kSignSeed);
	see(0.0, 0);
	for (size_t i = 1; i < kSampledSigns; i++) {
		double sum = 0;
		int number = 0;
		uint64_t bits = 0;
		for (size_t v = 0; v < values.size(); v++, bits >>= 1) {
			if (v % 64 == 0)
				bits = random.Next();
			sum += bits & 1 ? values[v] : 0;
			number += static_cast<int>(bits & 1);
		}
		see(sum, number);
	}
}

template <typename See> void ForSigns(const std::vector<double> &values, See see)
{
	if (values.size() <= kExactPairs)
		ForSubsets(values, see);
	else
		ForSomeSubsets(values, see);
}

// The autocovariances up to a lag.
std::vector<double> Autocovariances(const std::vector<double> &series, size_t lags)
{
	const size_t n = series.size();
	double mean = std::accumulate(series.begin(), series.end(), 0.0) / static_cast<double>(n);
	std::vector<double> out(lags + 1);
	for (size_t k = 0; k <= lags; k++) {
		for (size_t i = 0; i + k < n; i++)
			out[k] += (series[i] - mean) * (series[i + k] - mean);
		out[k] /= static_cast<double>(n);
	}
	return out;
}

// The smallest lag after which a series of correlations is negligible.
size_t LastLag(const std::vector<double> &covariances, size_t stretch, double bound)
{
	size_t quiet = 0;
	for (size_t k = 1; k < covariances.size(); k++) {
		quiet = std::abs(covariances[k]) < bound * covariances[0] ? quiet + 1 : 0;
		if (quiet == stretch)
			return k - stretch;
	}
	for (size_t k = covariances.size() - 1; k > 0; k--)
		if (std::abs(covariances[k]) >= bound * covariances[0])
			return k;
	return 0;
}

} // namespace

double SignFlipP(const std::vector<double> &differences)
{
	if (differences.empty())
		return 1;
	// The differences of a subset get the opposite sign. The sum is at least the observed one if the
	// subset's sum was not above 0.
	double size = 0;
	for (double d : differences)
		size += std::abs(d);
	const double rounding = size * 1e-12;
	uint64_t as_large = 0, all = 0;
	ForSigns(differences, [&](double sum, int) {
		as_large += sum <= rounding;
		all++;
	});
	return static_cast<double>(as_large) / static_cast<double>(all);
}

Interval SignFlipInterval(const std::vector<double> &differences)
{
	if (differences.size() < kLeastPairs)
		return {};
	std::vector<double> means;
	ForSigns(differences, [&](double sum, int number) {
		if (number)
			means.push_back(sum / number);
	});
	// A centre is rejected while fewer subsets than this, including the empty one, have a mean beyond it.
	size_t rank = static_cast<size_t>(kTail * static_cast<double>(means.size() + 1));
	auto low = means.begin() + static_cast<ptrdiff_t>(rank - 1),
	     high = means.end() - static_cast<ptrdiff_t>(rank);
	Interval found = {true, 0, 0};
	std::nth_element(means.begin(), low, means.end());
	found.low = *low;
	std::nth_element(means.begin(), high, means.end());
	found.high = *high;
	return found;
}

std::vector<double> Holm(const std::vector<double> &p)
{
	std::vector<size_t> order(p.size());
	std::iota(order.begin(), order.end(), size_t{0});
	std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
	std::vector<double> adjusted(p.size());
	double least = 0;
	for (size_t i = 0; i < order.size(); i++) {
		least = std::max(least, p[order[i]] * static_cast<double>(order.size() - i));
		adjusted[order[i]] = std::min(least, 1.0);
	}
	return adjusted;
}

double BlockLength(const std::vector<double> &series)
{
	const size_t n = series.size();
	if (n < 8)
		return 1;
	const double size = static_cast<double>(n), digits = std::log10(size);
	const size_t stretch = std::max<size_t>(5, static_cast<size_t>(std::ceil(std::sqrt(digits))));
	const size_t most = std::min(n - 1, static_cast<size_t>(std::ceil(std::sqrt(size))) + stretch);
	std::vector<double> r = Autocovariances(series, most);
	if (r[0] <= 0)
		return 1; // the series is constant
	size_t last = std::max<size_t>(LastLag(r, stretch, 2 * std::sqrt(digits / size)), 1);
	size_t lags = std::min(2 * last, most);
	double g0 = r[0], slope = 0;
	for (size_t k = 1; k <= lags; k++) {
		double at = static_cast<double>(k) / static_cast<double>(lags);
		double window = std::min(1.0, 2 * (1 - at));
		g0 += 2 * window * r[k];
		slope += 2 * window * static_cast<double>(k) * r[k];
	}
	double spread = 4.0 / 3 * g0 * g0;
	if (spread <= 0)
		return 1;
	double length = std::cbrt(2 * slope * slope / spread * size);
	return std::clamp(length, 1.0, std::ceil(std::min(3 * std::sqrt(size), size / 3)));
}

Interval MiddleOf(std::vector<double> *values)
{
	if (values->empty())
		return {};
	std::sort(values->begin(), values->end());
	auto at = [&](double share) {
		double place = share * static_cast<double>(values->size() - 1);
		size_t below = static_cast<size_t>(place), above = std::min(below + 1, values->size() - 1);
		double rest = place - static_cast<double>(below);
		// Not as a difference, because both may be infinite.
		return rest > 0 ? (*values)[below] * (1 - rest) + (*values)[above] * rest : (*values)[below];
	};
	return {true, at(kTail), at(1 - kTail)};
}

double MedianOf(std::vector<double> values)
{
	if (values.empty())
		return 0;
	std::sort(values.begin(), values.end());
	size_t middle = values.size() / 2;
	return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double QuantileOf(std::vector<double> values, double share)
{
	if (values.empty())
		return 0;
	std::sort(values.begin(), values.end());
	double rank = std::ceil(share * static_cast<double>(values.size()) - 1e-9);
	return values[static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(values.size()))) - 1];
}

void CircularBlocks(size_t count, size_t length, size_t draws, Random *random,
		    const std::function<void(const std::vector<size_t> &starts)> &see)
{
	std::vector<size_t> starts((count + length - 1) / length);
	for (size_t i = 0; i < draws; i++) {
		for (size_t &start : starts)
			start = random->Below(count);
		see(starts);
	}
}

} // namespace forktail::analysis::compare
