// SPDX-License-Identifier: MIT
// Requests are examined one by one, while the timelines of their time are in memory.
#include "baseline.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

// Is there a stall in [from, to) that was long enough for a span?
bool MetStall(const Timeline &t, uint64_t from_ns, uint64_t to_ns)
{
	from_ns = std::max(from_ns, t.start_ns());
	to_ns = std::min(to_ns, t.end_ns());
	if (from_ns >= to_ns)
		return false;
	for (uint32_t p = PieceAt(t, from_ns); t.pieces[p].start_ns < to_ns; p++)
		if (t.pieces[p].span != kNoSpan && IsStall(t.pieces[p].cause))
			return true;
	return false;
}

} // namespace

void Usual::Add(const Context &context, const SampledRequest &r)
{
	all_[r.op].push_back(r.latency_ns);
	size_t server = context.ServerOfConnection(r.connection, r.start_ns);
	uint16_t back = context.way_ends.empty() ? kNoHop : context.way_ends[context.WayOf(server, r.behind)];
	if (!MetStall(*context.servers[server].timeline, r.intended_ns, r.arrived_ns) &&
	    (back == kNoHop || !MetStall(*context.timelines[back], r.intended_ns, r.arrived_ns)))
		calm_[r.op].push_back(r.latency_ns);
}

std::vector<uint64_t> Usual::Latencies()
{
	std::vector<uint64_t> usual(256);
	for (size_t op = 0; op < usual.size(); op++) {
		std::vector<uint64_t> &values = calm_[op].empty() ? all_[op] : calm_[op];
		if (values.empty())
			continue;
		uint64_t *median = values.data() + Rank(values.size(), 50) - 1;
		std::nth_element(values.data(), median, values.data() + values.size());
		usual[op] = *median;
	}
	return usual;
}

} // namespace forktail::analysis
