// SPDX-License-Identifier: MIT
// The comparison of two sides as data. text.cc, json.cc, markdown.cc, junit.cc and the compare page only
// print it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sample.h"
#include "statistics.h"

namespace forktail::analysis::compare
{

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

} // namespace forktail::analysis::compare
