// SPDX-License-Identifier: MIT
// Looks at requests with doubles, by running sums over a timeline of which it looks up two or three points: a
// few nanoseconds a request, by the same rules as exact blame (divide.h). Mixes are taken to be even, so that
// a request's stalls may be off by a nanosecond per mix it meets and ends.
#include "first_look.h"

#include <utility>

#include "analysis/timeline/curve.h"
#include "divide.h"
#include "parallel.h"
#include "through.h"

namespace forktail
{

namespace
{

constexpr double kSlackNs = 64; // of what a request would be without any stall
// Through a proxy a look costs microseconds: of more requests, one of several stands for all.
constexpr size_t kLooksThrough = 200'000;

struct Glance {
	double stall, busy, net, late, latency;
};

// The sums of Divide (divide.h) as doubles, all stalls in one. `hint` is UsageUntil's.
struct QuickSums {
	using Number = double;
	static constexpr bool kOutages = true;

	const Server &server;
	uint32_t *hint;
	double latency;
	double stall = 0, busy = 0, network = 0, late = 0;

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
	void SetNoServer(double without, double) { stall += without; }
	double StalledBefore(uint64_t due_ns) const
	{
		uint64_t since = std::max(server.backlog.ClearBefore(due_ns), server.timeline->start_ns());
		uint32_t near = *hint;
		return UsageOf(server.curve, since, due_ns, &near).stall;
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
	QuickSums sums = {server, &(*hints)[static_cast<size_t>(&server - context.servers.data())],
			  static_cast<double>(context.run.requests.Latency(i))};
	Divide(context, i, &sums);
	return {sums.stall, sums.busy, sums.network, sums.late, sums.latency};
}

// Through a proxy there is no quicker way.
Glance LookThrough(const Context &context, const Through &t, size_t i, Spent *s)
{
	Spend(context, t, i, s);
	uint64_t stall = 0;
	for (const AtHop &h : s->hops)
		for (size_t c = 0; c < kStallCauses; c++)
			stall += h.direct[c] + h.queued[c];
	return {static_cast<double>(stall), static_cast<double>(s->Sum(Cause::ServerBusy)),
		static_cast<double>(s->between_ns), static_cast<double>(s->late_ns),
		static_cast<double>(context.run.requests.Latency(i))};
}

uint64_t Whole(double ns)
{
	return ns > 0 ? static_cast<uint64_t>(ns + 0.5) : 0;
}

} // namespace

void FirstLook::Merge(const FirstLook &other)
{
	calm.Merge(other.calm);
	for (size_t c = 0; c < without.size(); c++)
		without[c].Merge(other.without[c]);
}

uint64_t StepThrough(uint64_t count)
{
	return count / kLooksThrough + 1;
}

void LookAtWindow(const Context &context, uint64_t step, std::vector<FirstLook> *workers)
{
	const Requests &q = context.run.requests;
	ForRanges(q.lead, q.size(), [&](size_t begin, size_t end, size_t w) {
		FirstLook &look = (*workers)[w];
		auto without = [&](Cause c) -> LogHistogram & {
			return look.without[static_cast<size_t>(Index(c) - kStallCauses)];
		};
		std::vector<uint32_t> hints(context.servers.size());
		Spent spent;
		for (size_t i = begin; i < end; i++) {
			if (IsError(q.status[i]))
				continue;
			const Through *t = context.ThroughOf(i);
			if (t && q.Number(i) % step)
				continue;
			Glance g = t ? LookThrough(context, *t, i, &spent) : Look(context, i, &hints);
			for (size_t n = 0; n < (t ? step : 1); n++) {
				look.calm.Add(Whole(g.latency - g.stall - kSlackNs));
				without(Cause::ServerBusy).Add(Whole(g.latency - g.busy));
				without(Cause::ClientLate).Add(Whole(g.latency - g.late));
				without(Cause::Network).Add(Whole(g.latency - g.net));
				without(Cause::Unknown).Add(Whole(g.stall + g.busy + g.net + g.late));
			}
		}
	});
}

} // namespace forktail
