// SPDX-License-Identifier: MIT
// See bootstrap.h. Long runs are drawn in units of several seconds: 600 units are enough.
#include "bootstrap.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/passes/percentile.h"

namespace forktail::analysis::compare
{

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
