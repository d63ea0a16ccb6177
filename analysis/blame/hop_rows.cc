// SPDX-License-Identifier: MIT
// A request counts once at each hop that it has a part at, however many parts. Rows are looked for from the
// first on: processes on a request's way are a handful.
#include "hop_rows.h"

#include <algorithm>

#include "through.h"

namespace forktail
{

namespace
{

HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows)
{
	for (HopRow &row : *rows)
		if (row.hop == hop)
			return row;
	rows->push_back({hop});
	return rows->back();
}

} // namespace

uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index)
{
	if (timelines[index].thread >= run.threads.size())
		return kNoHop;
	for (size_t i = 0; i < index; i++)
		if (timelines[i].thread < run.threads.size() &&
		    run.threads[timelines[i].thread].tid == run.threads[timelines[index].thread].tid)
			return static_cast<uint16_t>(i);
	return static_cast<uint16_t>(index);
}

void CountServed(uint16_t hop, uint64_t requests, Blame *blame)
{
	if (hop != kNoHop && requests)
		RowOf(hop, &blame->hops).served += requests;
}

void CountServed(const Context &context, Blame *blame)
{
	if (context.servers.size() == 1 && context.through.empty()) {
		CountServed(context.servers[0].hop, context.run.requests.size(), blame);
		return;
	}
	std::vector<uint64_t> by_server(context.servers.size()), by_way(context.through.size());
	for (size_t i = 0; i < context.run.requests.size(); i++) {
		by_server[context.ServerIndex(i)]++;
		if (context.ThroughOf(i))
			by_way[context.WayOf(i)]++;
	}
	for (size_t s = 0; s < by_server.size(); s++)
		CountServed(context.servers[s].hop, by_server[s], blame);
	for (size_t w = 0; w < by_way.size(); w++) {
		if (!context.through[w])
			continue;
		if (w % context.WaysOfServer() < context.run.behind.size())
			RowOf(context.through[w]->front_hop, &blame->hops).proxy = true;
		CountServed(context.through[w]->back_hop, by_way[w], blame);
	}
}

void FillHops(Blame *blame)
{
	std::vector<std::array<uint64_t, kCauses>> times;
	for (const SlowRequest &r : blame->slow) {
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
			const Part &part = blame->parts[p];
			if (part.hop == kNoHop)
				continue;
			HopRow &row = RowOf(part.hop, &blame->hops);
			bool seen = false;
			for (size_t before = r.first_part; before < p; before++)
				seen |= blame->parts[before].hop == part.hop;
			row.requests += !seen;
			row.time_ns += part.total_ns();
			times.resize(blame->hops.size());
			times[static_cast<size_t>(&row - blame->hops.data())]
			     [static_cast<size_t>(Index(part.cause))] += part.total_ns();
		}
	}
	times.resize(blame->hops.size());
	for (size_t h = 0; h < blame->hops.size(); h++) {
		HopRow &row = blame->hops[h];
		if (blame->slow_ns)
			row.share = static_cast<double>(row.time_ns) / static_cast<double>(blame->slow_ns);
		for (int c = 0; c < kCauses; c++)
			if (uint64_t ns = times[h][static_cast<size_t>(c)])
				row.causes.push_back({static_cast<Cause>(c), ns});
		std::stable_sort(row.causes.begin(), row.causes.end(),
				 [](const HopCause &a, const HopCause &b) { return a.time_ns > b.time_ns; });
	}
	std::stable_sort(blame->hops.begin(), blame->hops.end(),
			 [](const HopRow &a, const HopRow &b) { return a.time_ns > b.time_ns; });
}

} // namespace forktail
