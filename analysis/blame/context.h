// SPDX-License-Identifier: MIT
// What blame.cc and its parts work with: servers, ways through a proxy, and where parts of requests go.
// Private to them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/backlog.h"
#include "analysis/blame.h"
#include "analysis/curve.h"
#include "analysis/outages.h"
#include "analysis/route.h"
#include "analysis/whatif.h"

namespace forktail
{

constexpr uint32_t kNoRequest = UINT32_MAX;

struct Server {
	const Timeline *timeline;
	Curve curve;
	Backlog backlog;
	uint16_t hop;
};

// Requests to one server that went through to one behind it.
struct Through {
	Route route;
	Backlog backlog;
	uint16_t front_hop, back_hop;
};

struct Context {
	const Run &run;
	std::vector<Server> servers;
	ConnectionWaits taken;
	std::vector<uint64_t> usual_ns;
	const Clients &clients;
	std::vector<StalledIdle> stalled_idle; // by server, then load thread
	// By server, then by server behind it; null: nothing went there, or it was not recorded.
	std::vector<std::unique_ptr<Through>> through;
	// Per request the one that was answered before it on its connection; empty without such ways.
	Column<uint32_t> in_front;
	std::vector<Outage> outages;

	// How long the server was idle and the request's load thread stalled.
	uint64_t ClientStalled(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		int32_t client = clients.Of(run, i);
		if (client < 0)
			return 0;
		size_t server = static_cast<size_t>(&ServerOf(i) - servers.data());
		return stalled_idle[server * clients.timelines.size() + static_cast<size_t>(client)].Between(
		    from_ns, to_ns);
	}
	const Server &ServerOf(size_t i) const
	{
		uint32_t server = run.connections[run.requests.connection[i]].server;
		return servers[server < servers.size() ? server : 0];
	}
	const Through *ThroughOf(size_t i) const
	{
		uint32_t behind = through.empty() ? 0 : run.requests.Behind(i);
		if (behind == 0)
			return nullptr;
		size_t server = static_cast<size_t>(&ServerOf(i) - servers.data());
		return through[server * run.behind.size() + behind - 1].get();
	}
	uint64_t WithoutServer(size_t i) const
	{
		return outages.empty()
			   ? 0
			   : forktail::WithoutServer(outages, run.requests.intended_ns[i],
						     run.requests.end_ns[i], IsError(run.requests.status[i]));
	}
	uint64_t Until(size_t i) const
	{
		return taken.empty() ? run.requests.intended_ns[i] : taken.until_ns[i];
	}
	// How much of the time until then was the load generator's own: it was stalled, or the connection
	// free.
	uint64_t LateWaiting(size_t i) const
	{
		return taken.empty()
			   ? 0
			   : std::max(taken.free_ns[i],
				      ClientStalled(i, run.requests.intended_ns[i], taken.until_ns[i]));
	}
};

// Where a request's exact parts go; one per worker.
struct Sheet {
	Blamed requests;
	std::vector<Part> parts;
};

// Adds a part of the request that is being blamed, if it has any time.
void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet);
// Closes a request whose parts are the sheet's from r->first_part on.
void AddRequest(SlowRequest *r, Sheet *sheet);
// How much of a request's time is the backlog's: time the server worked for others beyond what is usual,
// and time it sat idle while the request waited for a connection that a late answer held.
uint64_t Excess(uint64_t busy_ns, uint64_t idle_waiting_ns, uint64_t usual_ns);

// ---- through.cc ----

struct AtHop {
	uint16_t hop;
	CauseTimes direct = {};
	std::array<uint64_t, kStallCauses> queued = {};
};

// What one request was spent on, hop by hop.
struct Spent {
	std::vector<AtHop> hops;
	uint64_t between_ns = 0, late_ns = 0, since_ns = 0;

	AtHop &At(uint16_t hop)
	{
		for (AtHop &h : hops)
			if (h.hop == hop)
				return h;
		hops.push_back({hop});
		return hops.back();
	}
	uint64_t Sum(Cause cause) const
	{
		uint64_t ns = 0;
		for (const AtHop &h : hops)
			ns += h.direct[static_cast<size_t>(Index(cause))];
		return ns;
	}
};

// Finds the ways through a proxy that requests took, without their backlogs; servers are known.
void FindWays(const std::vector<Timeline> &timelines, Context *context);
// Adds request i up into *spent, whose former content goes.
void Spend(const Context &context, const Through &through, size_t i, Spent *spent);
// Blames it.
void BlameThrough(const Context &context, const Through &through, size_t i, Spent *scratch, Sheet *sheet);

// ---- hop_rows.cc ----

// The hop that a timeline is: those of one process are one.
uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index);
// The table of hops: how many requests of the run came by each, and what passed there over the slow ones.
void CountServed(uint16_t hop, uint64_t requests, Blame *blame);
void CountServed(const Context &context, Blame *blame);
void FillHops(Blame *blame);

} // namespace forktail
