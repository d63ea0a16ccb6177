// SPDX-License-Identifier: MIT
// A proxy on one host, its servers on another, and a kernel log of each: every request is in both. The
// recorder of a proxy notes the local ends of its connections, so the other log's connections from there are
// known to be the proxy's. Their requests are parts of requests at the proxy. They are not counted again, but
// say which server a request was passed on to.
//
// A recorder that sees both ends joins them itself, by a hash of the request (loader/requests/proxied.h). A
// log has no hash: here a proxy's request is joined with one of the same command and size that lies within
// it. Of several the longest is taken, shorter proxy requests first: a request that was long at the proxy was
// long at its server, or the proxy itself stalled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "log_reader.h"

namespace forktail::analysis
{

// By connection of a kernel log; empty: none is a proxy's. Adds the connections' servers to the run's servers
// behind proxies.
std::vector<PassedOn> FindPassedOn(const std::vector<Target> &targets, Run *run);

class PassedOnJoin : public WaitingJoin
{
public:
	// `blocks`: of the same log, by time. `run` has its connections; it and `passed_on` must outlive this
	// object.
	PassedOnJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
		     const std::vector<PassedOn> &passed_on, const std::vector<Target> &targets,
		     const Run &run);
	void Fill(Requests *requests) override;
	bool HasBehind() const override { return true; }

private:
	struct PartSeen {
		uint64_t arrived_ns, answered_ns;
		uint8_t behind; // as in Requests
		bool taken;
	};
	// By proxy, command and size.
	using Line = std::vector<PartSeen>;
	void TakeWindow() override;
	size_t Prune() override;
	void Clear() override { lines_.clear(); }
	uint8_t Take(const Requests &requests, size_t i);

	const Run &run_;
	const std::vector<PassedOn> &passed_on_;
	std::vector<uint32_t>
	    proxy_of_server_; // as PassedOn::proxy, by index into run.servers; 0: it is none
	Run parts_;	      // its requests are those of the current window
	std::unordered_map<uint64_t, Line> lines_;
};

} // namespace forktail::analysis
