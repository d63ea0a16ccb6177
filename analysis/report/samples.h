// SPDX-License-Identifier: MIT
// The page's CPU samples: what each serving thread did and when, with stacks. The browser makes a lane and
// each episode's flame graph of them.
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
	std::vector<Range> threads; // threads with samples
	// Per thread by time. A sample represents `length` before `end`; after thinning, the dropped ones'
	// time too.
	std::vector<uint32_t> end, length;   // ticks
	std::vector<uint16_t> stack;	     // of those below
	std::vector<uint8_t> activity;	     // index into activities
	std::vector<uint8_t> own;	     // 1: own code; 0: a cause of its own, such as fork
	std::vector<std::string> activities; // [0] is "other", for activities beyond the maximum
	// Stack i has frames [stack_first[i], stack_first[i + 1]), outermost first. The last stack_kernel[i]
	// of them are kernel frames.
	std::vector<uint32_t> stack_first;
	std::vector<uint8_t> stack_kernel;
	std::vector<uint16_t> stack_frame;  // index into functions
	std::vector<std::string> functions; // [0] is "other"
	size_t total = 0;		    // before thinning
};

struct SampleLimits {
	size_t near = 60'000; // around episodes
	size_t far = 40'000;  // elsewhere
};

// Collects samples stretch by stretch.
class SampleCollector
{
public:
	SampleCollector(const Explanation &explanation, const ReportClock &clock, const SampleLimits &limits);
	void Add(uint64_t from_ns, uint64_t to_ns);
	ReportSamples Finish();

private:
	struct StoredSample {
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
		std::vector<StoredSample> kept = {};
		void Add(StoredSample sample);
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
