// SPDX-License-Identifier: MIT
// What is kept of the requests that were blamed exactly: sums over all of them, and themselves as long as
// there is room; of more than that the slowest.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/blame/blame.h"
#include "analysis/blame/blamed_requests.h"
#include "percentile.h"
#include "whatif.h"

namespace forktail::analysis
{

class Kept
{
public:
	// `limits.kept` requests, of `answered` that there are in all.
	Kept(const BlameLimits &limits, uint64_t answered)
	    : most_(limits.kept), tell_(limits.tell), answered_(answered)
	{
	}
	// From which latency on requests are slow. Before any is taken.
	void SetThreshold(uint64_t threshold_ns) { threshold_ns_ = threshold_ns; }
	// So many will be taken at once, with so many parts.
	void Expect(size_t requests, size_t parts);
	// Takes what a worker blamed, in the order of the log, and leaves it empty.
	void Take(Sheet *sheet);
	// All have been taken. True: there were more than are kept, so that they have to be taken again to
	// know what percentiles would be without a cause: as long as this says so.
	bool Again();
	// Gives them to the blame, with the table of causes; `without` as for FillWhatIf.
	void Conclude(const WithoutHistograms *without, Blame *blame);
	// What passed at each hop, over the slow ones.
	void FillHops(Blame *blame) const;

private:
	struct AtHopSum {
		uint16_t hop;
		uint64_t requests = 0, time_ns = 0;
		std::array<uint64_t, kCauses> by_cause = {};
	};
	void SumUp(const SlowRequest &r, const Part *parts);
	void Prune();
	void KeepSlowest();

	size_t most_;
	std::function<void(const SlowRequest &, const Part *)> tell_;
	uint64_t answered_;
	int pass_ = 0; // over what was blamed
	uint64_t threshold_ns_ = 0;
	uint64_t kept_from_ns_ = 0; // faster ones are not
	Blamed blamed_;
	std::vector<Part> parts_;
	std::unique_ptr<WithoutTails> tails_; // from when there was no more room on
	uint64_t slow_ = 0, slow_ns_ = 0, clocks_ns_ = 0;
	std::array<CauseRow, kCauses> rows_ = {};
	std::vector<AtHopSum> hops_;
};

} // namespace forktail::analysis
