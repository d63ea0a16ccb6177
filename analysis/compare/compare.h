// SPDX-License-Identifier: MIT
// Compares two sides, each a run or several runs of the same thing. docs/reference/diff-and-gate.md says how they are judged and
// why.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comparison.h"

namespace forktail::analysis::compare
{

struct CompareOptions {
	double allowed = 0.05; // how much worse B may be: a share of A
	double noise = 0;
	double excluded = 0.2; // a regression of as much must be ruled out, or the runs can't tell
	uint64_t slow_ns = 0;  // 0: p99 of A's first run
	uint64_t seed = 1;     // of the bootstrap
	uint64_t memory_bytes = 256 << 20;
	std::function<void(double)> progress; // 0..1
};

// The runs that `given` means: a run, or a directory in which runs lie, one in each of its own. By name,
// numbers in it by value. False: *error is one sentence.
bool FindRuns(const std::string &given, std::vector<std::string> *runs, std::string *error);

// What was asked for as one side: paths, or what a pattern became.
struct SideAsked {
	std::string given;
	std::vector<std::string> runs;
};

// Reads and compares; A's first run goes with B's first, and so on. False: *error is one sentence, *status
// the exit status.
bool CompareSides(const SideAsked &a, const SideAsked &b, const CompareOptions &options, Comparison *out,
		  std::string *error, int *status);

// Judges what has been read: fills all but a.runs and b.runs.
void Judge(const CompareOptions &options, Comparison *out);

// How much identical runs differ: the 95th percentile, over all pairings of them, of how much larger the
// one's p50, p99 or p99.9 is than the other's, whichever is more. 0 of fewer than 4.
double NoiseOf(const std::vector<RunSample> &runs);

// 0: the same, better or advisory, 1: worse, 3: the runs can't tell.
int ExitStatusOf(const Comparison &comparison);

std::string ComparisonText(const Comparison &comparison, bool colour);
std::string ComparisonMarkdown(const Comparison &comparison);
std::string ComparisonJson(const Comparison &comparison);
std::string ComparisonJunit(const Comparison &comparison);

} // namespace forktail::analysis::compare
