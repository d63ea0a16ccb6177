// SPDX-License-Identifier: MIT
// What the page tells of CPU samples: for each thread that serves requests, when it was seen doing what, with
// the stacks that say so. A lane and every episode's flame graph are made of them in the browser.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/explain/explanation.h"
#include "clock.h"
#include "points.h"

namespace forktail::analysis::report
{

struct ReportSamples {
	struct Range {
		uint32_t thread; // index into Run::threads
		size_t first, count;
	};
	std::vector<Range> threads; // those that have some
	// Per thread by time. A sample stands for `length` before `end`; where not all are kept, for the time
	// of those left out too.
	std::vector<uint32_t> end, length; // ticks
	std::vector<uint16_t> stack;	   // of those below
	std::vector<uint8_t> activity;	   // index into activities
	std::vector<uint8_t> own; // 1: own code, 0: something that has a cause of its own, as a fork has
	std::vector<std::string> activities; // [0] is "other": there were too many
	// Stack i has frames [stack_first[i], stack_first[i + 1]), outermost first; the last stack_kernel[i]
	// of them are the kernel's.
	std::vector<uint32_t> stack_first;
	std::vector<uint8_t> stack_kernel;
	std::vector<uint16_t> stack_frame;  // index into functions
	std::vector<std::string> functions; // [0] is "other"
	size_t total = 0;		    // that there were
};

struct SampleLimits {
	size_t near = 60'000; // around episodes
	size_t far = 40'000;  // the others
};

// Takes samples in stretches of the run, one after the other.
class SampleCollector
{
public:
	SampleCollector(const Explanation &explanation, const ReportClock &clock, const SampleLimits &limits);
	void Add(uint64_t from_ns, uint64_t to_ns);
	ReportSamples Finish();

private:
	struct Kept {
		uint64_t t_ns;
		uint64_t length_ns;
		uint32_t stack;
		uint32_t thread;
		uint8_t activity;
		uint8_t own;
	};
	// Every stride-th of some samples.
	struct Thinned {
		size_t limit;
		size_t stride = 1, seen = 0;
		std::vector<Kept> kept = {};
		void Add(Kept sample);
	};
	uint8_t NumberOf(const std::string &activity);

	const Explanation &e_;
	const ReportClock &clock_;
	std::vector<uint32_t> threads_;
	std::vector<TimeRange> around_; // episodes
	Thinned near_, far_;
	std::vector<std::string> activities_ = {"other"};
	std::unordered_map<std::string, uint8_t> numbers_;
	size_t total_ = 0;
};

} // namespace forktail::analysis::report
