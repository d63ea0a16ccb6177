// SPDX-License-Identifier: MIT
// Fits lanes into a page while their content arrives, in any number of stretches. The longest spans are
// stored; the rest and all shares become intervals of time. Memory is bounded by the limits, not by the run.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "clock.h"
#include "lane.h"

namespace forktail::analysis::report
{

// Sparse intervals of time: each lane's time by cause in them. They are lengthened when there are too many.
class LaneCells
{
public:
	LaneCells(const ReportClock &clock, size_t limit);
	void Add(size_t lane, const LaneShare &share);
	// Call it after everything was added. Returns the length of an interval.
	uint64_t Settle();
	void Append(size_t lane, ReportLanes *out) const;

private:
	using Slices = std::unordered_map<uint64_t, double>; // interval * kLaneCauses + cause -> ns
	std::vector<Slices> Merged(uint64_t factor) const;
	void SetSlice(uint64_t slice_ns);
	void Coarsen();

	const uint64_t begin_ns_, length_ns_;
	const size_t limit_;
	uint64_t shortest_ns_; // the minimum length of an interval
	uint64_t slice_ns_;    // of the intervals below, of which longer ones can be made
	size_t most_ = 0;      // the number from which they are lengthened
	size_t count_ = 0;
	std::vector<Slices> lanes_;
};

// Unique texts.
class LaneTexts
{
public:
	uint32_t Number(std::string text);
	const std::string &Text(uint32_t number) const { return *texts_[number]; }
	size_t size() const { return texts_.size(); }

private:
	std::unordered_map<std::string, uint32_t> known_;
	std::vector<const std::string *> texts_; // keys of known_, which do not move
};

class LaneReducer
{
public:
	LaneReducer(const ReportClock &clock, const LaneLimits &limits);
	// The number of a new lane.
	size_t NewLane() { return lanes_++; }
	void Add(size_t lane, const LaneShare &share) { cells_.Add(lane, share); }
	// Spans of a lane ascend. describe() returns a few lines about this one, or "".
	template <typename Describe> void Add(size_t lane, const LaneSpan &span, Describe describe)
	{
		total_++;
		if (span.end_ns - span.start_ns < shortest_ns_) {
			Slice(lane, span);
			return;
		}
		kept_.push_back({span, static_cast<uint32_t>(lane), texts_.Number(describe())});
		if (kept_.size() > limits_.spans + limits_.spans / 4)
			Thin();
	}
	// Call it after everything was added, with the lanes in the page's order and their numbers.
	ReportLanes Finish(std::vector<Lane> lanes);

private:
	struct StoredSpan {
		LaneSpan span;
		uint32_t lane;
		uint32_t text;
	};
	void Slice(size_t lane, const LaneSpan &s)
	{
		cells_.Add(lane, {s.start_ns, s.end_ns, static_cast<double>(s.end_ns - s.start_ns), s.cause});
	}
	void Thin();
	void ForgetTexts();

	const ReportClock &clock_;
	const LaneLimits limits_;
	size_t lanes_ = 0;
	size_t total_ = 0;
	uint64_t shortest_ns_ = 0; // shorter ones are dropped
	std::vector<StoredSpan> kept_;
	LaneTexts texts_;
	LaneCells cells_;
};

} // namespace forktail::analysis::report
