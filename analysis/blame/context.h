// SPDX-License-Identifier: MIT
// What requests are blamed with: servers, ways through a proxy, outages, and what is usual. Made once a run
// and then only read, so that all workers share it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/timeline/curve.h"
#include "backlog.h"
#include "blame.h"
#include "outages.h"
#include "route.h"

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
	const Serving &serving;
	std::vector<const Timeline *> timelines; // by hop
	std::vector<uint16_t> hop_of_thread;	 // by Run::threads; kNoHop: it has no timeline here
	std::vector<Server> servers; // one per run.servers; then further threads that serve, then nobody
	Column<uint16_t> served_by;  // per request, into servers; empty: by its connection's server
	ConnectionWaits taken;
	std::vector<uint64_t> usual_ns;
	const Clients &clients;
	std::vector<StalledIdle> stalled_idle; // by server, then load thread
	// By server, then by server behind it and, last, the thread that it hands on to; null: nothing went
	// there, or it was not recorded.
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
		return stalled_idle[ServerIndex(i) * clients.timelines.size() + static_cast<size_t>(client)]
		    .Between(from_ns, to_ns);
	}
	uint16_t HopOfThread(uint32_t thread) const
	{
		return thread < hop_of_thread.size() ? hop_of_thread[thread] : kNoHop;
	}
	size_t ServerIndex(size_t i) const
	{
		if (!served_by.empty())
			return served_by[i];
		uint32_t server = run.connections[run.requests.connection[i]].server;
		return server < servers.size() ? server : 0;
	}
	const Server &ServerOf(size_t i) const { return servers[ServerIndex(i)]; }
	// How many entries of `through` a server has.
	size_t WaysOfServer() const { return run.behind.size() + 1; }
	// The request's entry in `through`, whatever is there.
	size_t WayOf(size_t i) const
	{
		uint32_t behind = run.requests.Behind(i);
		return ServerIndex(i) * WaysOfServer() + (behind ? behind - 1 : run.behind.size());
	}
	const Through *ThroughOf(size_t i) const
	{
		return through.empty() ? nullptr : through[WayOf(i)].get();
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

} // namespace forktail
