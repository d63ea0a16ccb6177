// SPDX-License-Identifier: MIT
// All percentiles without a cause.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "analysis/blame.h"
#include "analysis/passes.h"

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
	void Add(const SlowRequest &request, const Part *parts, uint64_t times = 1);
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
	void Count(const SlowRequest &request, Cause cause, uint64_t without_ns, uint64_t times);
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

// The first look at all requests of a run. It finds those that need exact blame.

// Lower bounds of requests' latencies without some stall. For a direct request only the sum of its stalls is
// known here, which is a bound for each. Through a proxy, where exact blame is expensive, each stall is
// known.
struct Bounds {
	LogHistogram calm; // latencies without all stalls that are not in `without`
	std::array<std::unique_ptr<LogHistogram>, static_cast<size_t>(kStallCauses)> without;
	bool any = false;   // `without` has values
	size_t sampled = 0; // this many requests represent all; 0: all were examined

	// Adds `requests` requests like this one.
	void Add(double latency_ns, double stalls_ns, uint64_t requests);
	void Add(double latency_ns, const StallTimes &stalls_ns, uint64_t requests);
	void Merge(const Bounds &other);
	// By stall: without it, no request below this latency is among the slowest percent.
	StallTimes SlowestPercent() const;

private:
	LogHistogram *Of(size_t cause);
};

struct FirstLook {
	Bounds bounds;
	WithoutHistograms without;

	void Merge(const FirstLook &other);
};

// The latency from which requests must be examined. Without a cause no request has a higher rank than with
// it, so requests below all needed percentiles (p99 and above) need no look. That latency is estimated from
// the requests examined so far.
class Floor
{
public:
	// For a run with these latencies.
	explicit Floor(const LogHistogram &latencies);
	// The latency from which to examine requests now.
	uint64_t Of(const std::vector<FirstLook> &workers);
	// All requests that matter were examined. False: the estimate was too high, and the look must be
	// repeated.
	bool Covers(const FirstLook &look) const;

private:
	uint64_t likely_ns_, floor_ns_ = 0, highest_ns_ = 0;
	uint64_t next_count_ = 1 << 18; // when to estimate again
};

// Examines requests [first, last) of the current window of the log, and adds to the workers' results.
// Requests faster than floor_ns are only counted. Through a proxy, where a look is more expensive, one
// request of `step` represents all.
void LookAt(const Context &context, size_t first, size_t last, uint64_t step, uint64_t floor_ns,
	    std::vector<FirstLook> *workers);
// How many of `count` requests one represents there.
uint64_t ProxyStep(uint64_t count);

// The usual latency: per operation, the median of answered requests that met no stall with a span. If all met
// one, it is the median of all of them: a missed backlog is better than an invented one. Of a long log every
// n-th request is taken, so that the median is of about a million.
//
// The service time: per operation, the servers' own code during a request that met no other one. Requests
// that did have more, so it is a low percentile. Clients without a log need the server's time too: it is also
// known how much own code a server ran for each request of the log.

class Usual
{
public:
	// `log_from_ns`: earlier requests do not count for the service time.
	Usual(const Context &context, uint64_t log_from_ns);
	void Add(const Context &context, const SampledRequest &request);
	// Per op; 0: none of its requests was answered. Call it once.
	std::vector<uint64_t> Latencies();
	// Adds the threads' own code in [from_ns, to_ns), a part of the log's time.
	void AddOwnCode(const Context &context, uint64_t from_ns, uint64_t to_ns);
	// Sets the service times of a log with this many answered requests.
	void SetService(uint64_t answered, Context *context);

private:
	uint64_t log_from_ns_;
	std::vector<std::vector<uint64_t>> calm_{256}, all_{256}; // by op
	std::vector<std::vector<uint32_t>> service_{256};	  // likewise, of `calm_`; ns, at most 4 s
	std::vector<double> own_code_ns_;			  // by hop
	std::vector<uint64_t> of_server_, of_way_;		  // sampled requests
};

// The result of exact blame: sums over all blamed requests, and the requests themselves, or the slowest of
// them if there are too many.

class SlowestRequests
{
public:
	// Stores up to `limits.kept` requests of `answered` in total.
	SlowestRequests(const BlameLimits &limits, uint64_t answered)
	    : most_(limits.kept), tell_(limits.tell), answered_(answered)
	{
	}
	// Sets the latency from which requests are slow. Call it before the first Take().
	void SetThreshold(uint64_t threshold_ns);
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
	void TakeOne(SlowRequest r, const Part *parts);
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
	uint64_t idle_large_ns_ = 0;
	NetworkSplit split_;
	std::array<CauseRow, kCauses> rows_ = {};
	std::vector<AtHopSum> hops_;
};

// Exact blame in the same pass as the first look. Separately it would take a further pass over the log and
// over what threads did. Slow requests are known in advance. Which others matter, for percentiles without a
// cause, is known only after all were examined. Until then the limit is estimated from those examined,
// somewhat too low, and requests that turn out not to matter are dropped. If the estimate was too high, or
// takes in too many requests, the extra pass is done.

class SpeculativeBlame
{
public:
	SpeculativeBlame() = default;
	// Stores three times as many requests as SlowestRequests, without the equal ones, of requests with
	// these latencies.
	SpeculativeBlame(size_t most, const LogHistogram &latencies, uint64_t threshold_ns);
	// False: it was given up.
	bool Active() const { return active_; }
	void GiveUp();
	// The latency from which requests must be blamed now, by the requests examined so far.
	uint64_t From(const std::vector<FirstLook> &workers);
	// Takes the blamed requests in the order of the log, passes slow ones to *kept, and empties the
	// sheets.
	void Take(std::vector<Sheet> *sheets, SlowestRequests *kept);
	// Called after all were examined: those of least_ns or more matter. True: *kept got all of them. Else
	// it got the slow ones.
	bool PassTo(uint64_t least_ns, SlowestRequests *kept);
	// For SlowestRequests::Again: passes once more what percentiles need of each request.
	void PassAgainTo(SlowestRequests *kept) const;

private:
	// Equal requests. For percentiles only their latency without each cause is needed.
	struct Brief {
		uint64_t latency_ns;
		uint32_t count;
		uint16_t part_count;
	};
	// What a worker blamed in one step.
	struct Stretch {
		std::vector<Brief> requests;
		std::vector<uint64_t>
		    parts; // per entry in sequence: a cause, with its time in the upper bits
	};
	void Add(const Sheet &sheet);
	void Pass(uint64_t below_ns, SlowestRequests *kept) const;
	void Leave(uint64_t least_ns);

	bool active_ = true;
	size_t most_ = 0, count_ = 0;
	uint64_t threshold_ns_ = 0, likely_ns_ = 0, from_ns_ = 0, highest_ns_ = 0;
	std::vector<Stretch> stretches_;
};

// One loop over many items on all cores. Each worker gets one contiguous range and its own number, so that it
// can write to its own memory. Results do not depend on the number of workers.

// The maximum number of workers, at least 1.
inline size_t MaxWorkers()
{
	return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
}
// The workers that ForRanges uses for `count` items, at least 1.
inline size_t Workers(size_t count)
{
	return std::min(MaxWorkers(), count / 50'000 + 1);
}

// Calls f(begin, end, worker) for Workers(last - first) ranges that cover [first, last) in order.
template <typename F> void ForRanges(size_t first, size_t last, F f)
{
	size_t count = last - first, workers = Workers(count);
	std::vector<std::thread> threads;
	auto begin = [=](size_t w) { return first + count * w / workers; };
	for (size_t w = 1; w < workers; w++)
		threads.emplace_back([&f, begin, w] { f(begin(w), begin(w + 1), w); });
	f(begin(0), begin(1), size_t{0});
	for (std::thread &t : threads)
		t.join();
}

} // namespace forktail::analysis
