// SPDX-License-Identifier: MIT
// Every percentile without a cause.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "analysis/blame/blame.h"
#include "percentile.h"

namespace forktail::analysis
{

// Requests that were blamed in full: at least all that are slow, and all that could be among the slowest
// percent of the run with one stall taken out. Parts are kept beside them.
using Blamed = std::vector<SlowRequest>;

// Latencies of all answered requests with one cause taken out, for causes that nearly every request has a
// part in, so that full blame of a few would not do. Indexed by Cause - kStallCauses.
using WithoutHistograms = std::array<LogHistogram, static_cast<size_t>(kCauses - kStallCauses)>;

// Of more blamed requests than are kept: what percentiles would be without a cause, found by going through
// them twice.
class WithoutTails
{
public:
	// `answered` requests there are in all, of which those added are the slowest.
	explicit WithoutTails(uint64_t answered) : answered_(answered) {}
	void Add(const SlowRequest &request, const Part *parts);
	// All have been added, and are to be added again.
	void EndPass();
	// All have been added again. True: percentiles are known exactly, else they have to be added once
	// more.
	bool EndFurtherPass();
	// p99 and above.
	Latencies Without(Cause cause) const;

private:
	// What a slot has more of without the cause than with it.
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
	const WithoutTails *tails;	     // nullptr: `blamed` are all that were
	const WithoutHistograms *histograms; // nullptr: `blamed` are all requests there are
	uint64_t answered;
};

// Fills `without` of blame->causes.
void FillWhatIf(const WhatIf &from, Blame *blame);

} // namespace forktail::analysis
