// SPDX-License-Identifier: MIT
// The time of one request that went through a proxy, hop by hop.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "context.h"
#include "thread_shares.h"

namespace forktail::analysis
{

using StallTimes = std::array<uint64_t, static_cast<size_t>(kStallCauses)>;

struct HopTimes {
	std::vector<AtHop> hops; // in the order of the path
	uint64_t between_ns = 0, late_ns = 0, since_ns = 0;

	AtHop &At(uint16_t hop)
	{
		for (AtHop &h : hops)
			if (h.hop == hop)
				return h;
		hops.push_back({hop});
		return hops.back();
	}
	void Add(const CauseTimes &times, uint16_t hop)
	{
		CauseTimes &to = At(hop).direct;
		for (size_t c = 0; c < kCauses; c++)
			to[c] += times[c];
	}
	// Over all hops, including queued time.
	StallTimes Stalls() const
	{
		StallTimes ns = {};
		for (const AtHop &h : hops)
			for (size_t c = 0; c < ns.size(); c++)
				ns[c] += h.direct[c] + h.queued[c];
		return ns;
	}
	uint64_t Sum(Cause cause) const
	{
		uint64_t ns = 0;
		for (const AtHop &h : hops)
			ns += h.direct[static_cast<size_t>(Index(cause))];
		return ns;
	}
};

// A request and its path.
struct RequestPath {
	const Context &context;
	size_t request;
	const ProxyPath *proxy; // null: not through a known proxy
	Cuts cuts;
};
RequestPath PathOfRequest(const Context &context, size_t i);

// Adds [from, to) of its time and returns the part in which all hops were idle.
uint64_t AddOwn(const RequestPath &path, uint64_t from_ns, uint64_t to_ns, HopTimes *s);

} // namespace forktail::analysis
