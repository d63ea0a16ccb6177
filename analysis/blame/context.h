// SPDX-License-Identifier: MIT
// What requests are blamed with: servers, paths through a proxy, outages, and usual latencies. It is
// read-only while the requests of a window are processed, so that all workers share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/timeline/curve.h"
#include "backlog.h"
#include "blame.h"
#include "held.h"
#include "outages.h"
#include "route.h"

namespace forktail::analysis
{

constexpr uint32_t kNoRequest = UINT32_MAX;

struct Server {
	const Timeline *timeline;
	Curve curve;
	Backlog backlog;
	uint16_t hop;
	bool awaits = false; // it is a client of other servers
	bool holds = false; // it answers by itself, in one thread: while it is idle it holds what it has read
	double service_ns =
	    0; // its own code per request of the run, including that for clients without a log
};

// Requests to one server that passed them to one behind it.
struct ProxyPath {
	Route route;
	Backlog backlog;
	uint16_t front_hop, back_hop;
};

struct Context {
	const Run &run;
	const Serving &serving;
	const Clients &clients;
	std::vector<Outage> outages;
	HeldTimes held = {};
	HeldRule held_rule = {};
	// Requests begin and end at the server's sockets: no time of theirs is the network's or a client's.
	bool in_kernel = SeenInKernel(run);
	std::vector<const Timeline *> timelines = {}; // by hop
	std::vector<uint16_t> hop_of_thread = {};     // by Run::threads; kNoHop: it has no timeline here
	// One per run.servers, then further serving threads, then one for requests of an unknown server.
	std::vector<Server> servers = {};
	std::vector<uint16_t> server_of_hop = {}; // index into servers; empty: each connection has its server
	std::vector<StalledIdle> stalled_idle = {}; // by server, then load thread
	std::vector<uint64_t> usual_ns = {};
	// Per op: own code of the servers during a request that met no stall and no other request; 0:
	// unknown.
	std::vector<uint64_t> service_ns = {};
	// Where requests may go from a server: by server, then by the server behind it and, last, by the
	// thread to which it passes them. The value is the end of the path; kNoHop: no such path, or it was
	// not recorded. `proxy_paths` has the paths that requests took.
	std::vector<uint16_t> way_ends = {};
	std::vector<std::unique_ptr<ProxyPath>> proxy_paths = {};
	std::vector<double> way_service_ns = {}; // likewise, as Server::service_ns of both ends

	// Per request of the window of the log in run.requests.
	Column<uint16_t> served_by = {}; // index into servers; empty: by the connection's server
	ConnectionWaits taken = {};
	// The request answered before it on its connection; empty without such paths.
	Column<uint32_t> in_front = {};

	// How long the server was idle while the request's load thread was stalled.
	uint64_t ClientStalled(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		int32_t client = clients.Of(run.requests.connection[i]);
		if (client < 0)
			return 0;
		return stalled_idle[ServerIndex(i) * clients.timelines.size() + static_cast<size_t>(client)]
		    .Between(from_ns, to_ns);
	}
	uint16_t HopOfThread(uint32_t thread) const
	{
		return thread < hop_of_thread.size() ? hop_of_thread[thread] : kNoHop;
	}
	size_t ServerOfConnection(uint32_t connection, uint64_t sent_ns) const
	{
		if (server_of_hop.empty()) {
			uint32_t server = run.connections[connection].server;
			return server < servers.size() ? server : 0;
		}
		size_t server = servers.size() - 1;
		if (connection < serving.connections.size())
			for (const Serving::Stretch &s : serving.connections[connection])
				if (s.from_ns <= sent_ns && sent_ns < s.to_ns)
					server = server_of_hop[s.hop];
		return server;
	}
	size_t ServerIndex(size_t i) const
	{
		return served_by.empty()
			   ? ServerOfConnection(run.requests.connection[i], run.requests.sent_ns[i])
			   : served_by[i];
	}
	const Server &ServerOf(size_t i) const { return servers[ServerIndex(i)]; }
	// Entries of `proxy_paths` per server.
	size_t WaysOfServer() const { return run.behind.size() + 1; }
	// The entry in `proxy_paths` of requests to a server that passed them to one behind it, 1 + index
	// into run.behind; 0: unknown.
	size_t WayOf(size_t server, uint32_t behind) const
	{
		return server * WaysOfServer() + (behind ? behind - 1 : run.behind.size());
	}
	size_t WayOf(size_t i) const { return WayOf(ServerIndex(i), run.requests.Behind(i)); }
	const ProxyPath *ProxyPathOf(size_t i) const
	{
		return proxy_paths.empty() ? nullptr : proxy_paths[WayOf(i)].get();
	}
	uint64_t WithoutServer(size_t i) const
	{
		const Requests &q = run.requests;
		if (outages.empty())
			return 0;
		// One that was never sent may have no connection.
		const int server = q.status[i] == FT_STATUS_UNSENT
				       ? kAnyServer
				       : static_cast<int>(run.connections[q.connection[i]].server);
		return forktail::analysis::WithoutServer(outages, q.due_ns[i], q.end_ns[i],
							 IsError(q.status[i]), server);
	}
	// The servers' work that fell due in [from_ns, to_ns) with requests like request i.
	double WorkDue(size_t i, const Backlog &backlog, double service_mean_ns, uint64_t from_ns,
		       uint64_t to_ns) const
	{
		return backlog.Due(from_ns, to_ns) *
		       std::max(service_mean_ns, static_cast<double>(service_ns[run.requests.op[i]]));
	}
	uint64_t Until(size_t i) const { return taken.empty() ? run.requests.due_ns[i] : taken.until_ns[i]; }
	// How long the server held requests, as it reports.
	uint64_t Held(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		return ServerOf(i).awaits ? 0 : held.Between(from_ns, to_ns);
	}
	// Likewise, while the request waited for its connection: also the one that took it.
	uint64_t HeldWaiting(size_t i) const
	{
		return std::max(Held(i, run.requests.due_ns[i], Until(i)),
				taken.empty() ? 0 : taken.held_ns[i]);
	}
	bool Blocks(size_t i) const
	{
		return run.requests.op[i] < held_rule.blocking.size() &&
		       held_rule.blocking[run.requests.op[i]];
	}
	// From when on the server surely held a request that its kernel saw in [from, to): `to` if it did
	// not.
	uint64_t ReadAt(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		const Requests &q = run.requests;
		return ServerOf(i).holds && !q.Behind(i) && i < q.read_ns.size() && q.read_ns[i]
			   ? std::clamp(q.read_ns[i], from_ns, to_ns)
			   : to_ns;
	}
	// How much of the time until then is the load generator's: it was stalled, or the connection was
	// free.
	uint64_t LateWaiting(size_t i) const
	{
		return taken.empty() ? 0
				     : std::max(taken.free_ns[i],
						ClientStalled(i, run.requests.due_ns[i], taken.until_ns[i]));
	}
};

} // namespace forktail::analysis
