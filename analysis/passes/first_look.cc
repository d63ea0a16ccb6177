// SPDX-License-Identifier: MIT
// The first look uses doubles and running sums over a timeline, with two or three lookups: a few nanoseconds
// per request, by the same rules as exact blame (divide.h). Mixes are assumed to be even. So a request's
// stalls may be off by a nanosecond for each mix at its ends.
#include "first_look.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/blame/divide.h"
#include "analysis/blame/proxy.h"
#include "analysis/timeline/curve.h"
#include "parallel.h"

namespace forktail::analysis
{

namespace
{

constexpr double kSlackNs = 128; // error of a request's latency without stalls
// Through a proxy a look takes microseconds: of more requests than this, one of several represents all.
constexpr size_t kMostProxyLooks = 200'000;

struct Glance {
	double stall, busy, net, late, latency;
};

// The sums of Divide (divide.h) as doubles, with all stalls in one. `hint` is that of UsageUntil.
struct QuickSums {
	using Number = double;
	static constexpr bool kOutages = true;

	const Context &context;
	const Server &server;
	uint32_t *hint;
	double latency;
	double stall = 0, busy = 0, network = 0, late = 0;
	uint64_t clear_ns = 0;

	double AddWaiting(uint64_t from_ns, uint64_t to_ns)
	{
		Usage u = UsageOf(server.curve, from_ns, to_ns, hint);
		stall += u.stall;
		busy += u.busy;
		network += u.socket;
		return u.idle;
	}
	double AddServed(uint64_t from_ns, uint64_t to_ns) { return AddWaiting(from_ns, to_ns); }
	double Busy() const { return busy; }
	double Unknown() const { return latency - stall - busy - network - late; }
	void AddUnknown(double) {} // see Unknown
	void AddHeld(double ns) { stall += ns; }
	void SetNoServer(double without, double) { stall += without; }
	BeforeDue<double> Before(size_t i)
	{
		const uint64_t due_ns = context.run.requests.due_ns[i];
		clear_ns = std::max(server.backlog.ClearBefore(due_ns), server.timeline->start_ns());
		uint32_t near = *hint;
		const Usage u = UsageOf(server.curve, clear_ns, due_ns, &near);
		return {u.stall, u.busy,
			context.WorkDue(i, server.backlog, server.service_ns, clear_ns, due_ns)};
	}
	InIteration<double> AtDue(size_t i) const
	{
		const TimeSpan iteration =
		    ClosedIteration(context.run, *server.timeline, context.run.requests.due_ns[i]);
		uint32_t near = *hint;
		double in = 0;
		ForServersTime(context, i, iteration.until_ns, [&](uint64_t from_ns, uint64_t to_ns) {
			in += UsageOf(server.curve, from_ns, to_ns, &near).busy;
		});
		return {in, UsageOf(server.curve, clear_ns, iteration.since_ns, &near).stall};
	}
	void MoveToQueued(double moved, double from_busy)
	{
		busy -= from_busy;
		stall += moved;
	}
};

// `hints` are per server.
Glance Look(const Context &context, size_t i, std::vector<uint32_t> *hints)
{
	const Server &server = context.ServerOf(i);
	QuickSums sums = {context, server, &(*hints)[static_cast<size_t>(&server - context.servers.data())],
			  static_cast<double>(context.run.requests.Latency(i))};
	Divide(context, i, &sums);
	return {sums.stall, sums.busy, sums.network, sums.late, sums.latency};
}

// There is no faster way through a proxy.
Glance LookAtProxyRequest(const Context &context, const ProxyPath &t, size_t i, ProxyScratch *scratch,
			  StallTimes *stalls)
{
	SumHops(context, t, i, scratch);
	const HopTimes &s = scratch->times;
	*stalls = s.Stalls();
	return {static_cast<double>(std::accumulate(stalls->begin(), stalls->end(), uint64_t{0})),
		static_cast<double>(s.Sum(Cause::ServerBusy)), static_cast<double>(s.between_ns),
		static_cast<double>(s.late_ns), static_cast<double>(context.run.requests.Latency(i))};
}

uint64_t Whole(double ns)
{
	// Via a signed number, which a processor converts in one instruction.
	return ns > 0 ? static_cast<uint64_t>(static_cast<int64_t>(ns + 0.5)) : 0;
}

void AddTimes(double ns, uint64_t times, LogHistogram *h)
{
	uint64_t value = Whole(ns);
	h->slots[LogHistogram::Slot(value)] += static_cast<uint32_t>(times);
	h->count += times;
	h->max = std::max(h->max, value);
}

} // namespace

LogHistogram *Bounds::Of(size_t cause)
{
	// No earlier request had this stall.
	any = true;
	if (!without[cause])
		without[cause] = std::make_unique<LogHistogram>(calm);
	return without[cause].get();
}

void Bounds::Add(double latency_ns, double stalls_ns, uint64_t requests)
{
	if (any)
		for (auto &histogram : without)
			if (histogram)
				AddTimes(latency_ns - stalls_ns - kSlackNs, requests, histogram.get());
	AddTimes(latency_ns - stalls_ns - kSlackNs, requests, &calm);
}

void Bounds::Add(double latency_ns, const StallTimes &stalls_ns, uint64_t requests)
{
	for (size_t c = 0; c < without.size(); c++)
		if (stalls_ns[c] || without[c])
			AddTimes(latency_ns - static_cast<double>(stalls_ns[c]) - kSlackNs, requests, Of(c));
	AddTimes(latency_ns - kSlackNs, requests, &calm);
}

void Bounds::Merge(const Bounds &other)
{
	for (size_t c = 0; c < without.size(); c++)
		if (without[c] || other.without[c])
			Of(c)->Merge(other.without[c] ? *other.without[c] : other.calm);
	calm.Merge(other.calm);
	sampled += other.sampled;
}

StallTimes Bounds::SlowestPercent() const
{
	// A sample may miss the start of the slowest percent: eight standard errors cover that.
	double percentile = 99;
	if (sampled)
		percentile -= std::min(9.0, 800 * std::sqrt(0.01 * 0.99 / static_cast<double>(sampled)));
	StallTimes ns;
	ns.fill(calm.PercentileFloor(percentile));
	for (size_t c = 0; c < ns.size(); c++)
		if (without[c])
			ns[c] = without[c]->PercentileFloor(percentile);
	return ns;
}

void FirstLook::Merge(const FirstLook &other)
{
	bounds.Merge(other.bounds);
	for (size_t c = 0; c < without.size(); c++)
		without[c].Merge(other.without[c]);
}

uint64_t ProxyStep(uint64_t count)
{
	return count / kMostProxyLooks + 1;
}

// Most runs have few stalls, so without them the slowest percent is little faster than with them.
Floor::Floor(const LogHistogram &latencies) : likely_ns_(latencies.PercentileFloor(90)) {}

uint64_t Floor::Of(const std::vector<FirstLook> &workers)
{
	constexpr double lower = 0.92; // later requests may be faster
	uint64_t count = 0;
	for (const FirstLook &w : workers)
		count += w.bounds.calm.count;
	if (count < next_count_)
		return floor_ns_;
	next_count_ = 2 * count;
	std::vector<const LogHistogram *> together;
	auto least = UINT64_MAX;
	auto note = [&](auto of) {
		together.clear();
		for (const FirstLook &w : workers)
			together.push_back(&of(w));
		least = std::min(least, PercentileFloor(together, 99));
	};
	note([](const FirstLook &w) -> const LogHistogram & { return w.bounds.calm; });
	for (size_t c = 0; c < std::tuple_size_v<WithoutHistograms>; c++)
		note([c](const FirstLook &w) -> const LogHistogram & { return w.without[c]; });
	floor_ns_ = std::min(static_cast<uint64_t>(static_cast<double>(least) * lower), likely_ns_);
	highest_ns_ = std::max(highest_ns_, floor_ns_);
	return floor_ns_;
}

bool Floor::Covers(const FirstLook &look) const
{
	auto above = [this](const LogHistogram &h) {
		return LogHistogram::Slot(h.PercentileFloor(99)) > LogHistogram::Slot(highest_ns_);
	};
	return highest_ns_ == 0 ||
	       (above(look.bounds.calm) && std::all_of(look.without.begin(), look.without.end(), above));
}

void LookAt(const Context &context, size_t first, size_t last, uint64_t step, uint64_t floor_ns,
	    std::vector<FirstLook> *workers)
{
	const Requests &q = context.run.requests;
	ForRanges(first, last, [&](size_t begin, size_t end, size_t w) {
		FirstLook &look = (*workers)[w];
		auto without = [&](Cause c) {
			return &look.without[static_cast<size_t>(Index(c) - kStallCauses)];
		};
		std::vector<uint32_t> hints(context.servers.size());
		ProxyScratch scratch;
		StallTimes stalls;
		uint64_t below = 0;
		for (size_t i = begin; i < end; i++) {
			if (IsError(q.status[i]))
				continue;
			if (q.Latency(i) < floor_ns) {
				below++;
				continue;
			}
			const ProxyPath *t = context.ProxyPathOf(i);
			if (t && q.Number(i) % step)
				continue;
			Glance g = t ? LookAtProxyRequest(context, *t, i, &scratch, &stalls)
				     : Look(context, i, &hints);
			uint64_t stands_for = t ? step : 1;
			look.bounds.sampled += stands_for > 1;
			if (t)
				look.bounds.Add(g.latency, stalls, stands_for);
			else
				look.bounds.Add(g.latency, g.stall, stands_for);
			AddTimes(g.latency - g.busy, stands_for, without(Cause::ServerBusy));
			AddTimes(g.latency - g.late, stands_for, without(Cause::ClientLate));
			AddTimes(g.latency - g.net, stands_for, without(Cause::Network));
			AddTimes(g.stall + g.busy + g.net + g.late, stands_for, without(Cause::Unknown));
		}
		if (!below)
			return;
		look.bounds.Add(0, 0, below);
		for (LogHistogram &h : look.without)
			AddTimes(0, below, &h);
	});
}

} // namespace forktail::analysis
