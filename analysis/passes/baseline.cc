// SPDX-License-Identifier: MIT
// Requests are examined one by one, while the timelines of their time are in memory.
#include "baseline.h"

#include <algorithm>
#include <numeric>

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

uint64_t OwnCode(const Timeline &t, uint64_t from_ns, uint64_t to_ns)
{
	CauseTimes times = {};
	AddTimes(t, from_ns, to_ns, &times);
	return times[Index(Cause::ServerBusy)];
}

// With the precision of a float: sums over parts of a run may differ by nanoseconds from those over all of
// it.
double PerRequest(double ns, double requests)
{
	return requests > 0 ? static_cast<double>(static_cast<float>(ns / requests)) : 0;
}

} // namespace

Usual::Usual(const Context &context, uint64_t log_from_ns)
    : log_from_ns_(log_from_ns), own_code_ns_(context.timelines.size()), of_server_(context.servers.size()),
      of_way_(context.way_ends.size())
{
}

void Usual::Add(const Context &context, const SampledRequest &r)
{
	all_[r.op].push_back(r.latency_ns);
	size_t server = context.ServerOfConnection(r.connection, r.start_ns);
	if (r.intended_ns >= log_from_ns_) {
		of_server_[server]++;
		if (!of_way_.empty())
			of_way_[context.WayOf(server, r.behind)]++;
	}
	uint16_t back = context.way_ends.empty() ? kNoHop : context.way_ends[context.WayOf(server, r.behind)];
	const Timeline &front = *context.servers[server].timeline;
	if (MetStall(front, r.intended_ns, r.arrived_ns) ||
	    (back != kNoHop && MetStall(*context.timelines[back], r.intended_ns, r.arrived_ns)))
		return;
	calm_[r.op].push_back(r.latency_ns);
	uint64_t service_ns = OwnCode(front, r.start_ns, r.arrived_ns);
	if (back != kNoHop)
		service_ns += OwnCode(*context.timelines[back], r.start_ns, r.arrived_ns);
	service_[r.op].push_back(static_cast<uint32_t>(std::min<uint64_t>(service_ns, UINT32_MAX)));
}

void Usual::AddOwnCode(const Context &context, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t hop = 0; hop < own_code_ns_.size(); hop++)
		own_code_ns_[hop] += static_cast<double>(OwnCode(*context.timelines[hop], from_ns, to_ns));
}

void Usual::SetService(uint64_t answered, Context *context)
{
	constexpr double alone = 10; // percentile of requests that met no other one
	context->service_ns.assign(service_.size(), 0);
	for (size_t op = 0; op < service_.size(); op++) {
		std::vector<uint32_t> &values = service_[op];
		if (values.empty())
			continue;
		uint32_t *value = values.data() + Rank(values.size(), alone) - 1;
		std::nth_element(values.data(), value, values.data() + values.size());
		context->service_ns[op] = *value;
		values = {};
	}
	const uint64_t sampled = std::accumulate(of_server_.begin(), of_server_.end(), uint64_t{0});
	const double stands_for =
	    static_cast<double>(answered) / static_cast<double>(std::max<uint64_t>(sampled, 1));
	auto own_code = [&](uint16_t hop) { return hop == kNoHop ? 0.0 : own_code_ns_[hop]; };
	for (size_t s = 0; s < of_server_.size(); s++) {
		Server &server = context->servers[s];
		server.service_ns =
		    PerRequest(own_code(server.hop), static_cast<double>(of_server_[s]) * stands_for);
	}
	context->way_service_ns.assign(of_way_.size(), 0);
	for (size_t w = 0; w < of_way_.size(); w++)
		context->way_service_ns[w] =
		    PerRequest(own_code(context->servers[w / context->WaysOfServer()].hop) +
				   own_code(context->way_ends[w]),
			       static_cast<double>(of_way_[w]) * stands_for);
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
