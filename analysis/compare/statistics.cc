// SPDX-License-Identifier: MIT
// The statistics of a comparison: medians, ranges, and the bootstrap.
//
// Long runs are drawn in units of several seconds: 600 units are enough.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "analysis/passes.h"
#include "comparison.h"

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

namespace
{

constexpr size_t kMostUnits = 600;
constexpr size_t kLeastBlocks = 30, kLeastBusyBlocks = 10;

// Some seconds of a run. Buckets are numbered densely.
struct Piece {
	std::vector<std::pair<uint32_t, uint32_t>> latencies;
	std::array<double, kCauses> cause_seconds = {};
	std::array<uint32_t, kCauses> episodes = {};
	uint64_t requests = 0;
};

struct Pieces {
	std::vector<Piece> all;
	size_t seconds_each = 1;
	size_t block = 1; // in pieces
	std::array<bool, kQuantiles> bounded = {};
};

using Dense = std::map<uint32_t, uint32_t>; // bucket -> number, in order

void Number(const RunSample &run, Dense *dense)
{
	for (const SecondOfRun &second : run.by_second)
		for (const auto &[bucket, count] : second.latencies)
			(*dense)[bucket];
}

Pieces Cut(const RunSample &run, const Dense &dense)
{
	Pieces out;
	out.seconds_each = (run.by_second.size() + kMostUnits - 1) / kMostUnits;
	// Whole units only: a shorter rest would be drawn as if it had the full length.
	for (size_t at = 0; at + out.seconds_each <= run.by_second.size(); at += out.seconds_each) {
		Piece piece;
		std::map<uint32_t, uint32_t> sum;
		for (size_t i = at; i < at + out.seconds_each; i++) {
			const SecondOfRun &second = run.by_second[i];
			for (const auto &[bucket, count] : second.latencies) {
				sum[dense.at(bucket)] += count;
				piece.requests += count;
			}
			for (const auto &[cause, ns] : second.cause_ns)
				piece.cause_seconds[static_cast<size_t>(Index(cause))] +=
				    static_cast<double>(ns) / 1e9;
			for (Cause cause : second.episodes)
				piece.episodes[static_cast<size_t>(Index(cause))]++;
		}
		piece.latencies.assign(sum.begin(), sum.end());
		out.all.push_back(std::move(piece));
	}
	return out;
}

// A percentile from counts, as if latencies were spread evenly in a bucket.
double Percentile(const std::vector<uint64_t> &counts, const std::vector<uint32_t> &buckets, uint64_t all,
		  double point)
{
	uint64_t rank = Rank(all, point), before = 0;
	for (size_t i = 0; i < counts.size(); i++) {
		if (before + counts[i] < rank || counts[i] == 0) {
			before += counts[i];
			continue;
		}
		double low = static_cast<double>(BucketNs(buckets[i])),
		       high = static_cast<double>(BucketNs(buckets[i] + 1));
		return low + (high - low) * (static_cast<double>(rank - before) - 0.5) /
				 static_cast<double>(counts[i]);
	}
	return 0;
}

uint64_t AboveIn(const Piece &piece, uint32_t number)
{
	uint64_t above = 0;
	for (const auto &[at, count] : piece.latencies)
		above += at > number ? count : 0;
	return above;
}

// The number of the bucket that holds a percentile of all.
uint32_t NumberOf(const Pieces &pieces, size_t numbers, double point)
{
	std::vector<uint64_t> counts(numbers);
	uint64_t all = 0, before = 0;
	for (const Piece &piece : pieces.all) {
		all += piece.requests;
		for (const auto &[at, count] : piece.latencies)
			counts[at] += count;
	}
	uint64_t rank = Rank(all, point);
	for (size_t i = 0; i < numbers; i++)
		if ((before += counts[i]) >= rank)
			return static_cast<uint32_t>(i);
	return 0;
}

// Chooses the block's length: a second, twice the longest episode, or what the series above the percentiles
// needs, whichever is longest. Also marks the percentiles above which enough blocks have requests.
void ChooseBlock(const RunSample &run, size_t numbers, Pieces *pieces)
{
	const double each = static_cast<double>(pieces->seconds_each);
	double length = 2 * static_cast<double>(run.longest_episode_ns) / 1e9 / each;
	std::array<std::vector<double>, kQuantiles> above;
	for (size_t q = 0; q < kQuantiles; q++) {
		uint32_t number = NumberOf(*pieces, numbers, kQuantilePoints[q]);
		for (const Piece &piece : pieces->all)
			above[q].push_back(static_cast<double>(AboveIn(piece, number)));
		length = std::max(length, BlockLength(above[q]));
	}
	const size_t count = pieces->all.size();
	pieces->block = std::min(static_cast<size_t>(std::ceil(std::max(length, 1.0))), count);
	for (size_t q = 0; q < kQuantiles; q++) {
		size_t bounded = 0;
		for (size_t at = 0; at < count; at += pieces->block)
			bounded += std::any_of(
			    above[q].begin() + static_cast<ptrdiff_t>(at),
			    above[q].begin() + static_cast<ptrdiff_t>(std::min(at + pieces->block, count)),
			    [](double n) { return n > 0; });
		pieces->bounded[q] = count / pieces->block >= kLeastBlocks && bounded >= kLeastBusyBlocks;
	}
}

// The results of the draws; sums are per second.
struct DrawResults {
	std::array<std::vector<double>, kQuantiles> log_percentile;
	std::vector<double> log_rate;
	std::array<std::vector<double>, kCauses> cause_seconds, episodes;
};

DrawResults Draw(const Pieces &pieces, const std::vector<uint32_t> &buckets, size_t draws, Random *random)
{
	DrawResults out;
	std::vector<uint64_t> counts(buckets.size());
	const size_t n = pieces.all.size();
	CircularBlocks(n, pieces.block, draws, random, [&](const std::vector<size_t> &starts) {
		std::fill(counts.begin(), counts.end(), 0);
		uint64_t requests = 0;
		std::array<double, kCauses> seconds = {}, episodes = {};
		size_t left = n;
		for (size_t start : starts)
			for (size_t i = 0; i < pieces.block && left > 0; i++, left--) {
				const Piece &piece = pieces.all[(start + i) % n];
				for (const auto &[at, count] : piece.latencies)
					counts[at] += count;
				requests += piece.requests;
				for (size_t c = 0; c < kCauses; c++) {
					seconds[c] += piece.cause_seconds[c];
					episodes[c] += piece.episodes[c];
				}
			}
		for (size_t q = 0; q < kQuantiles; q++)
			out.log_percentile[q].push_back(std::log(
			    std::max(Percentile(counts, buckets, requests, kQuantilePoints[q]), 1.0)));
		out.log_rate.push_back(std::log(std::max(static_cast<double>(requests), 1.0) /
						static_cast<double>(n * pieces.seconds_each)));
		for (size_t c = 0; c < kCauses; c++) {
			out.cause_seconds[c].push_back(seconds[c]);
			out.episodes[c].push_back(episodes[c]);
		}
	});
	return out;
}

Interval Between(const std::vector<double> &a, const std::vector<double> &b)
{
	std::vector<double> differences(a.size());
	for (size_t i = 0; i < a.size(); i++)
		differences[i] = b[i] - a[i];
	return MiddleOf(&differences);
}

// One sentence about the percentiles without an interval; "" if all have one.
std::string MissingIntervals(const std::array<bool, kQuantiles> &bounded)
{
	static const char *const names[kQuantiles] = {"p50", "p90", "p99", "p99.9", "p99.99"};
	std::string list;
	for (size_t q = 0; q < kQuantiles; q++)
		if (!bounded[q])
			list += (list.empty() ? "" : ", ") + std::string(names[q]);
	return list.empty() ? ""
			    : "no interval for " + list +
				  ": the runs are too short. An interval needs 30 approximately "
				  "independent blocks of seconds, 10 of them with slower requests";
}

} // namespace

PairIntervals BootstrapPair(const RunSample &a, const RunSample &b, uint64_t seed, size_t draws)
{
	PairIntervals out;
	out.why = MissingIntervals({});
	if (a.by_second.empty() || b.by_second.empty())
		return out;
	Dense dense;
	Number(a, &dense);
	Number(b, &dense);
	std::vector<uint32_t> buckets;
	for (auto &[bucket, number] : dense) {
		number = static_cast<uint32_t>(buckets.size());
		buckets.push_back(bucket);
	}
	Pieces pieces_a = Cut(a, dense), pieces_b = Cut(b, dense);
	ChooseBlock(a, buckets.size(), &pieces_a);
	ChooseBlock(b, buckets.size(), &pieces_b);
	std::array<bool, kQuantiles> bounded;
	for (size_t q = 0; q < kQuantiles; q++)
		bounded[q] = pieces_a.bounded[q] && pieces_b.bounded[q];
	out.why = MissingIntervals(bounded);
	if (std::min(pieces_a.all.size() / pieces_a.block, pieces_b.all.size() / pieces_b.block) <
	    kLeastBlocks)
		return out;
	Random random(seed);
	DrawResults from_a = Draw(pieces_a, buckets, draws, &random),
		    from_b = Draw(pieces_b, buckets, draws, &random);
	for (size_t q = 0; q < kQuantiles; q++)
		if (bounded[q])
			out.log_ratio[q] = Between(from_a.log_percentile[q], from_b.log_percentile[q]);
	out.rate_log_ratio = Between(from_a.log_rate, from_b.log_rate);
	for (size_t c = 0; c < kCauses; c++) {
		out.request_seconds[c] = Between(from_a.cause_seconds[c], from_b.cause_seconds[c]);
		out.episodes[c] = Between(from_a.episodes[c], from_b.episodes[c]);
	}
	return out;
}

} // namespace forktail::analysis::compare
