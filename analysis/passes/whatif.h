// SPDX-License-Identifier: MIT
// All percentiles without a cause.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "analysis/blame/blame.h"
#include "percentile.h"

namespace forktail::analysis
{

// Requests that were blamed in full, with their parts: at least all slow ones, and all that could be among
// the slowest percent of the run without one of the stalls.
using Blamed = std::vector<SlowRequest>;

// Latencies of all answered requests without one cause, for causes that nearly every request has a part of;
// full blame of a few requests is not enough for those. Indexed by Cause - kStallCauses.
using WithoutHistograms = std::array<LogHistogram, static_cast<size_t>(kCauses - kStallCauses)>;

// Percentiles without a cause for more blamed requests than can be stored, by two passes over them.
class WithoutTails
{
public:
	// `answered`: all requests; those added are the slowest of them.
	explicit WithoutTails(uint64_t answered) : answered_(answered) {}
	void Add(const SlowRequest &request, const Part *parts);
	// Ends the first pass over all of them.
	void EndPass();
	// Ends a further pass. True: percentiles are exact; else one more pass is needed.
	bool EndFurtherPass();
	// p99 and above.
	Latencies Without(Cause cause) const;

private:
	// How many more values a slot has without the cause than with it.
	struct Difference {
		std::vector<int32_t> slots = std::vector<int32_t>(LogHistogram().slots.size());
	};
	void Count(const SlowRequest &request, Cause cause, uint64_t without_ns);
	std::vector<uint64_t> Ranks() const;

	uint64_t answered_;
	LogHistogram all_;
	std::map<Cause, Difference> of_cause_;
	std::map<Cause, RankFinder> finders_; // from the second pass on
};

struct WhatIf {
	const Blamed &blamed;
	const std::vector<Part> &parts;
	const WithoutTails *tails;	     // nullptr: `blamed` has all blamed requests
	const WithoutHistograms *histograms; // nullptr: `blamed` has all requests
	uint64_t answered;
};

// Fills `without` of blame->causes.
void FillWhatIf(const WhatIf &from, Blame *blame);

} // namespace forktail::analysis
