// SPDX-License-Identifier: MIT
// The comparison of two sides as data; text.cc, json.cc, markdown.cc, junit.cc and the compare page only show
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sample.h"
#include "statistics.h"

namespace forktail::analysis::compare
{

// What is said of one difference.
enum class Verdict {
	Same,	      // no change is shown that is larger than what is allowed
	Better,	      // shown, as Worse is
	Worse,	      // shown, and larger than what is allowed
	Inconclusive, // the runs can't tell: too few, or too unlike each other
	Advisory,     // one pair alone: an interval, and no judgement
};
const char *VerdictName(Verdict verdict); // "same", "worse"

enum class Unit { Nanoseconds, PerSecond, Seconds, Count, Bytes };

// One cause's part in the difference of a percentile: of the requests about it.
struct CauseChange {
	Cause cause;
	double a_ns, b_ns; // on average over the side's runs
	double change_ns() const { return b_ns - a_ns; }
};

// One figure of both sides. a and b are medians over the side's runs.
struct Difference {
	std::string name; // "p99.9", "throughput", "fork"
	Unit unit = Unit::Nanoseconds;
	double a = 0, b = 0;
	double ratio = 1; // b to a, from pairs: their geometric mean; NaN: not known, one is 0
	Interval ratio_interval;
	double change = 0;	  // a * (ratio - 1), or b - a where no ratio is known
	Interval change_interval; // likewise
	bool judged = false;	  // one of those that decide
	double p_better = 1;	  // one-sided, that B is not better
	double p = 1;		  // one-sided, that B is not worse
	double holm_p = 1;	  // the same, of several
	Verdict verdict = Verdict::Advisory;
	std::vector<CauseChange> causes = {}; // of a percentile: the largest change first
	std::string sentence = {};	      // all of it in words; "" if there is nothing to say
};

// A fact that is not the same on both sides, or not in all runs of one.
struct FactChange {
	std::string group, name;
	std::string a, b;     // several values: with commas between; "" is not known
	bool matters = false; // it says that something else was measured: load, host, server's version
};

// Episodes whose main cause is the same, over all runs of a side.
struct EpisodeChange {
	Cause cause;
	EpisodeSum a, b;    // sums and maxima over the side's runs
	Difference per_run; // how many
};

struct ComparedSide {
	std::string given;	     // as it was asked for
	std::vector<RunSample> runs; // in the order of pairs
	// Means over its runs.
	ByCause request_seconds = {}, stalled_seconds = {};
};

struct Comparison {
	ComparedSide a, b;
	bool advisory = false; // one pair alone
	double allowed = 0.05; // how much worse may be: a share of A
	double excluded = 0.2; // a regression of as much must be ruled out for "same"
	double noise = 0;      // the 95th percentile of how much identical runs differ; 0: not measured
	uint64_t slow_ns = 0;  // what was slow on both sides
	std::vector<FactChange> facts;
	std::vector<Difference> percentiles; // p50, p90, p99, p99.9, p99.99, max
	Difference throughput;
	std::vector<Difference> causes;	     // request-seconds of slow requests; the largest change first
	std::vector<Difference> stalled;     // the serving threads' seconds per run, likewise
	std::vector<EpisodeChange> episodes; // most requests' time first
	Difference fork_seconds, fork_longest, rss;
	std::vector<std::string> changes;    // what changed, in words, the most telling first
	std::vector<std::string> notes;	     // what limits the comparison
	Verdict verdict = Verdict::Advisory; // of all
	std::string reason;		     // one sentence for that
};

} // namespace forktail::analysis::compare
