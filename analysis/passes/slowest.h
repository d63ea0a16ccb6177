// SPDX-License-Identifier: MIT
// The result of exact blame: sums over all blamed requests, and the requests themselves, or the slowest of
// them if there are too many.
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

class SlowestRequests
{
public:
	// Stores up to `limits.kept` requests of `answered` in total.
	SlowestRequests(const BlameLimits &limits, uint64_t answered)
	    : most_(limits.kept), tell_(limits.tell), answered_(answered)
	{
	}
	// Sets the latency from which requests are slow. Call it before the first Take().
	void SetThreshold(uint64_t threshold_ns) { threshold_ns_ = threshold_ns; }
	// Announces the number of requests and parts of the next Take().
	void Expect(size_t requests, size_t parts);
	// Takes a worker's blamed requests, in the order of the log, and empties the sheet.
	void Take(Sheet *sheet);
	// Call it after all requests were taken. True: there were too many to store, so they must be taken
	// again for the percentiles without a cause, until it returns false.
	bool Again();
	// Moves the results to the blame, with the table of causes; `without` is as for FillWhatIf.
	void Conclude(const WithoutHistograms *without, Blame *blame);
	// Time by hop, over the slow requests.
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
	int pass_ = 0; // over the blamed requests
	uint64_t threshold_ns_ = 0;
	uint64_t kept_from_ns_ = 0; // faster ones are not stored
	Blamed blamed_;
	std::vector<Part> parts_;
	std::unique_ptr<WithoutTails> tails_; // set when the room was full
	uint64_t slow_ = 0, slow_ns_ = 0, clocks_ns_ = 0;
	ServerIdle idle_;
	NetworkSplit split_;
	std::array<CauseRow, kCauses> rows_ = {};
	std::vector<AtHopSum> hops_;
};

} // namespace forktail::analysis
