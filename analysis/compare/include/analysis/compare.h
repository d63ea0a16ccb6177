// SPDX-License-Identifier: MIT
// Compares two sides, each one run or several runs of the same configuration. docs/reference/diff-and-gate.md
// has the method and its reasons.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../../comparison.h"

namespace forktail::analysis::compare
{

struct CompareOptions {
	double allowed = 0.05; // allowed regression: a share of A
	double noise = 0;
	double excluded = 0.2; // "same" requires that a regression of this share is ruled out
	uint64_t slow_ns = 0;  // 0: p99 of A's first run
	uint64_t seed = 1;     // for the bootstrap
	uint64_t memory_bytes = 256 << 20;
	std::function<void(double)> progress; // 0..1
};

// The runs that `given` means: a run, or a directory with one run in each of its directories. Sorted by name,
// with numbers by value. False: *error is one sentence.
bool FindRuns(const std::string &given, std::vector<std::string> *runs, std::string *error);

// One side as requested: paths, or the matches of a pattern.
struct SideAsked {
	std::string given;
	std::vector<std::string> runs;
};

// Reads and compares. A's first run is paired with B's first, and so on. False: *error is one sentence,
// *status the exit status.
bool CompareSides(const SideAsked &a, const SideAsked &b, const CompareOptions &options, Comparison *out,
		  std::string *error, int *status);

// Judges the runs that were read: fills all but a.runs and b.runs.
void Judge(const CompareOptions &options, Comparison *out);

// How much identical runs differ. For each pair of runs, the larger p50, p99 or p99.9 exceeds the smaller one
// by some share; the result is the 95th percentile of that share, for the percentile with the largest one. 0
// for fewer than 4 runs.
double NoiseOf(const std::vector<RunSample> &runs);

// 0: same, better or advisory; 1: worse; 3: inconclusive.
int ExitStatusOf(const Comparison &comparison);

std::string ComparisonText(const Comparison &comparison, bool colour);
std::string ComparisonMarkdown(const Comparison &comparison);
std::string ComparisonJson(const Comparison &comparison);
std::string ComparisonJunit(const Comparison &comparison);

} // namespace forktail::analysis::compare
