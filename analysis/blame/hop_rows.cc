// SPDX-License-Identifier: MIT
// Rows are searched linearly, because few processes are on a request's path.
#include "hop_rows.h"

namespace forktail::analysis
{

HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows)
{
	for (HopRow &row : *rows)
		if (row.hop == hop)
			return row;
	rows->push_back({hop});
	return rows->back();
}

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

void CountServed(const Context &context, const std::vector<uint64_t> &by_server,
		 const std::vector<uint64_t> &by_way, Blame *blame)
{
	for (size_t s = 0; s < by_server.size(); s++)
		CountServed(context.servers[s].hop, by_server[s], blame);
	for (size_t w = 0; w < by_way.size(); w++) {
		if (!context.proxy_paths[w])
			continue;
		if (w % context.WaysOfServer() < context.run.behind.size())
			RowOf(context.proxy_paths[w]->front_hop, &blame->hops).proxy = true;
		CountServed(context.proxy_paths[w]->back_hop, by_way[w], blame);
	}
}

} // namespace forktail::analysis
