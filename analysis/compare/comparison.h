// SPDX-License-Identifier: MIT
// The statistics of a comparison, as pure functions of numbers. Each names its source;
// docs/reference/diff-and-gate.md has the reasons for the choice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/blame.h"
#include "analysis/timeline.h"

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

// A run reduced to what is compared: percentiles, the time of its requests and servers by cause, episodes and
// forks, latency by second, and the facts that should be equal on both sides.

// Latencies by size: 128 buckets per power of two, so that a bucket is less than 0.8 % wide.
constexpr unsigned kBucketBits = 7;
uint32_t LatencyBucket(uint64_t ns);
uint64_t BucketNs(uint32_t bucket); // its lowest latency

// One second of the run: the requests due in it, and the episodes that began in it.
struct SecondOfRun {
	std::vector<std::pair<uint32_t, uint32_t>> latencies; // (bucket, count), by bucket
	std::vector<std::pair<Cause, uint64_t>> cause_ns;     // of slow requests, by cause
	std::vector<Cause> episodes;			      // the main cause of each
};

// A fact that should be equal in two runs.
struct RunFact {
	std::string group; // "host", "server", "configuration", "load"
	std::string name;  // "kernel", "maxmemory"
	std::string value;
};

using ByCause = std::array<double, kCauses>;

struct EpisodeSum {
	uint64_t count = 0;
	uint64_t requests = 0;
	uint64_t worst_ns = 0;	 // highest latency
	uint64_t longest_ns = 0; // longest episode
	double request_seconds = 0;
};

struct ForkSum {
	uint64_t count = 0;
	double seconds = 0;
	uint64_t longest_ns = 0;
	uint64_t rss_bytes = 0; // the server's maximum in the recorder's memory series; 0: unknown
};

// The mean parts of requests near a percentile, in ns; `known` false: too few were slow.
struct Composition {
	bool known = false;
	ByCause ns = {};
};

struct RunSample {
	std::string path;
	std::string name;      // the path's last part
	uint64_t requests = 0; // answered
	uint64_t errors = 0;
	uint64_t drops = 0; // events that the recorder dropped
	double seconds = 0; // from the first request due to the last answer
	double rate = 0;    // answers per second of those
	Latencies latencies;
	uint64_t slow_ns = 0; // the threshold of "slow", the same for all compared runs
	uint64_t slow_requests = 0;
	double slow_seconds = 0;		       // sum of slow requests' latencies
	ByCause request_seconds = {};		       // of those, by cause
	ByCause stalled_seconds = {};		       // of the serving threads' time
	std::array<EpisodeSum, kCauses> episodes = {}; // by main cause
	uint64_t longest_episode_ns = 0;
	ForkSum forks;
	Composition at_p99, at_p99_9;
	std::vector<SecondOfRun> by_second;
	std::vector<RunFact> facts;
	std::vector<std::string> notes; // what is unknown or missing in it
	uint32_t shared_mode = 0666;	// as Run::shared_mode
};

// Reads a run. *slow_ns 0 becomes its p99, so that the next run uses the same threshold. False: *error is one
// sentence, *status the exit status.
bool TakeSample(const std::string &path, uint64_t memory_bytes, const std::function<void(double)> &progress,
		uint64_t *slow_ns, RunSample *sample, std::string *error, int *status);

// What one pair of runs can show: how far its differences would scatter with other seconds of the same runs.
// A circular block bootstrap, because successive seconds are alike. It cannot know how other runs would
// differ, so it gives no verdict.

constexpr size_t kQuantiles = 5;
constexpr std::array<double, kQuantiles> kQuantilePoints = {50, 90, 99, 99.9, 99.99};

struct PairIntervals {
	std::array<Interval, kQuantiles> log_ratio; // of B's percentile to A's
	Interval rate_log_ratio;
	std::array<Interval, kCauses> request_seconds; // B's less A's
	std::array<Interval, kCauses> episodes;	       // likewise, the count
	std::string why;			       // what is unknown, and why; "" if all is known
};

// Uses `draws` draws from each run, the same for the same seed.
PairIntervals BootstrapPair(const RunSample &a, const RunSample &b, uint64_t seed, size_t draws = 2000);

// The comparison of two sides as data. outputs.cc and the compare page only print it.

// The verdict on one difference.
enum class Verdict {
	Same,	      // no change above the allowed one is shown
	Better,	      // shown statistically, as Worse is
	Worse,	      // shown statistically, and above the allowed change
	Inconclusive, // undecided: too few runs, or runs that differ too much
	Advisory,     // only one pair: an interval, and no verdict
};
const char *VerdictName(Verdict verdict); // "same", "worse"

enum class Unit { Nanoseconds, PerSecond, Seconds, Count, Bytes };

// One cause's part in the difference of a percentile: its time in the requests near it.
struct CauseChange {
	Cause cause;
	double a_ns, b_ns; // mean over the side's runs
	double change_ns() const { return b_ns - a_ns; }
};

// One figure of both sides. a and b are medians over the side's runs.
struct Difference {
	std::string name; // "p99.9", "throughput", "fork"
	Unit unit = Unit::Nanoseconds;
	double a = 0, b = 0;
	double ratio = 1; // B / A: the geometric mean over pairs; NaN: unknown, because one is 0
	Interval ratio_interval;
	double change = 0;	  // a * (ratio - 1), or b - a if the ratio is unknown
	Interval change_interval; // likewise
	bool judged = false;	  // it takes part in the verdict
	double p_better = 1;	  // one-sided, that B is not better
	double p = 1;		  // one-sided, that B is not worse
	double holm_p = 1;	  // p, corrected for several tests
	Verdict verdict = Verdict::Advisory;
	std::vector<CauseChange> causes = {}; // for a percentile: largest change first
	std::string sentence = {};	      // the difference as a sentence; "" if a and b are equal
};

// A fact that differs between the sides, or between the runs of one side.
struct FactChange {
	std::string group, name;
	std::string a, b;     // several values are joined with commas; "": unknown
	bool matters = false; // it means that something else was measured: load, host, server's version
};

// Episodes whose main cause is the same, over all runs of a side.
struct EpisodeChange {
	Cause cause;
	EpisodeSum a, b;    // sums and maxima over the side's runs
	Difference per_run; // number of episodes
};

struct ComparedSide {
	std::string given;	     // as given by the user
	std::vector<RunSample> runs; // in the order of pairs
	// Means over its runs.
	ByCause request_seconds = {}, stalled_seconds = {};
};

struct Comparison {
	ComparedSide a, b;
	bool advisory = false; // only one pair
	double allowed = 0.05; // allowed regression: a share of A
	double excluded = 0.2; // "same" requires that a regression of this share is ruled out
	double noise = 0;      // noise of identical runs, as NoiseOf returns it; 0: not measured
	uint64_t slow_ns = 0;  // the threshold of "slow" on both sides
	std::vector<FactChange> facts;
	std::vector<Difference> percentiles; // p50, p90, p99, p99.9, p99.99, max
	Difference throughput;
	std::vector<Difference> causes;	     // request-seconds of slow requests; largest change first
	std::vector<Difference> stalled;     // the serving threads' seconds per run, likewise
	std::vector<EpisodeChange> episodes; // by request time, largest first
	Difference fork_seconds, fork_longest, rss;
	std::vector<std::string> changes;    // the changes as sentences, the most important first
	std::vector<std::string> notes;	     // limits of the comparison
	Verdict verdict = Verdict::Advisory; // the verdict of the comparison
	std::string reason;		     // its reason, one sentence
};

// Differences as sentences, for text, Markdown and the page.

std::string ValueText(Unit unit, double value);	  // "12.4 ms", "1.10 GB"
std::string ChangeText(Unit unit, double change); // the same with its sign: "+12.4 ms"
// " [+9.8 ms, +15.1 ms]"; "" if unknown.
std::string IntervalText(const Difference &d);
// "+12.4 %"; "" if unknown.
std::string RatioText(const Difference &d);

// Fills the sentences, changes and reason.
void PutIntoWords(Comparison *c);

// Rows of a comparison as cells, for text and Markdown.

struct ComparisonTable {
	std::string title;
	std::vector<std::string> head;
	std::vector<std::vector<std::string>> rows;
};

// The tables: percentiles and throughput, causes, stalls of the server, episodes, forks.
std::vector<ComparisonTable> TablesOf(const Comparison &comparison);
// Differences between hosts, loads and servers; no rows: none.
ComparisonTable FactsOf(const Comparison &comparison);
std::string SideText(const ComparedSide &side); // "runs/base, 8 runs"

// The facts that should be equal on both sides and are not.

std::vector<FactChange> FactChanges(const ComparedSide &a, const ComparedSide &b);

} // namespace forktail::analysis::compare
