// SPDX-License-Identifier: MIT
// See clients.h. Clients are ranked by their longest request: with a percentile, one that sends few requests
// would never be among them, and its average would hide a spike.
#include "clients.h"

#include <algorithm>

namespace forktail::live::watch
{

namespace
{

void AddTo(const OfClient &more, OfClient *to)
{
	to->count += more.count;
	to->sum_ns += more.sum_ns;
	to->max_ns = std::max(to->max_ns, more.max_ns);
}

// Leaves the `most` clients with the longest requests, in this order, and adds the others as one.
void KeepSlowest(size_t most, std::vector<OfClient> *all)
{
	OfClient other;
	std::erase_if(*all, [&](const OfClient &c) {
		const bool is_other = c.client.kind == live::Client::Kind::Other;
		if (is_other)
			AddTo(c, &other);
		return is_other;
	});
	std::stable_sort(all->begin(), all->end(),
			 [](const OfClient &a, const OfClient &b) { return a.max_ns > b.max_ns; });
	for (size_t i = most; i < all->size(); i++)
		AddTo((*all)[i], &other);
	all->resize(std::min(all->size(), most));
	if (other.count)
		all->push_back(other);
}

} // namespace

void AddClients(const std::vector<OfClient> &more, uint64_t sample, std::vector<OfClient> *to)
{
	auto before = [](const OfClient &a, const OfClient &b) { return a.client < b.client; };
	for (OfClient c : more) {
		c.count *= sample;
		c.sum_ns *= sample;
		to->push_back(c);
	}
	std::sort(to->begin(), to->end(), before);
	size_t kept = 0;
	for (size_t i = 0; i < to->size(); i++)
		if (kept && (*to)[kept - 1].client == (*to)[i].client)
			AddTo((*to)[i], &(*to)[kept - 1]);
		else
			(*to)[kept++] = (*to)[i];
	to->resize(kept);
	if (to->size() <= live::kMostClients + 1)
		return;
	KeepSlowest(live::kMostClients, to);
	std::sort(to->begin(), to->end(), before);
}

std::vector<ClientFigures> SlowestClients(std::vector<OfClient> all, double seconds, size_t most)
{
	std::vector<ClientFigures> figures;
	double whole_ns = 0;
	for (const OfClient &c : all)
		whole_ns += static_cast<double>(c.sum_ns);
	KeepSlowest(most, &all);
	for (const OfClient &c : all)
		figures.push_back({c.client.Name(), seconds > 0 ? static_cast<double>(c.count) / seconds : 0,
				   c.count, c.count ? c.sum_ns / c.count : 0, c.max_ns,
				   whole_ns > 0 ? static_cast<double>(c.sum_ns) / whole_ns : 0});
	return figures;
}

} // namespace forktail::live::watch
