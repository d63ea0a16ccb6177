// SPDX-License-Identifier: MIT
// One pass over slow requests by start. A request begins a new episode if it is due more than a gap after the
// end of all requests of the episode before. Time is also added up by cause and hop, because each cause is
// printed with the process where most of it was spent. That table holds one episode at a time: there can be
// as many episodes as slow requests.
#include "episodes.h"

#include <algorithm>
#include <map>

namespace forktail::analysis
{

namespace
{

// An episode's time by cause, and by hop and cause for time spent at a hop.
struct Times {
	std::array<uint64_t, kCauses> by_cause = {};
	std::map<std::pair<uint16_t, Cause>, uint64_t> by_hop;
};

double ShareOf(const Episode &e, uint64_t ns)
{
	return static_cast<double>(ns) / static_cast<double>(e.time_ns);
}

void SetCauses(const Times &times, Episode *e)
{
	e->causes.reserve(static_cast<size_t>(
	    std::count_if(times.by_cause.begin(), times.by_cause.end(), [](uint64_t ns) { return ns > 0; })));
	for (int c = 0; c < kCauses; c++)
		if (uint64_t ns = times.by_cause[static_cast<size_t>(c)])
			e->causes.push_back({static_cast<Cause>(c), kNoHop, ns, ShareOf(*e, ns)});
	std::stable_sort(e->causes.begin(), e->causes.end(),
			 [](const EpisodeCause &a, const EpisodeCause &b) { return a.time_ns > b.time_ns; });
}

void SetHops(const Times &times, Episode *e)
{
	std::map<uint16_t, uint64_t> hops;
	for (const auto &[where, ns] : times.by_hop)
		hops[where.first] += ns;
	e->hops.reserve(hops.size());
	for (const auto &[hop, ns] : hops)
		e->hops.push_back({hop, ns, ShareOf(*e, ns)});
	std::stable_sort(e->hops.begin(), e->hops.end(),
			 [](const EpisodeHop &a, const EpisodeHop &b) { return a.time_ns > b.time_ns; });
	for (EpisodeCause &cause : e->causes) {
		uint64_t most = 0;
		for (const auto &[where, ns] : times.by_hop) {
			if (where.second != cause.cause || ns <= most)
				continue;
			most = ns;
			cause.hop = where.first;
		}
	}
}

void AddAnswer(const SlowRequest &r, EpisodeAnswers *answers)
{
	if (!r.arrived)
		return;
	answers->known++;
	answers->unread_ns += r.unread_ns;
	answers->longest_unread_ns = std::max(answers->longest_unread_ns, r.unread_ns);
	answers->way.request_ns += r.way.request_ns;
	answers->way.answer_ns += r.way.answer_ns;
}

void AddRequest(const SlowRequest &r, const std::vector<Part> &parts, Times *times, Episode *e)
{
	e->end_ns = std::max(e->end_ns, r.end_ns());
	e->since_ns = std::min(e->since_ns, r.since_ns);
	e->requests++;
	e->worst_ns = std::max(e->worst_ns, r.latency_ns);
	e->time_ns += r.latency_ns;
	AddAnswer(r, &e->answers);
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
		const Part &part = parts[p];
		times->by_cause[static_cast<size_t>(Index(part.cause))] += part.total_ns();
		if (part.hop != kNoHop)
			times->by_hop[{part.hop, part.cause}] += part.total_ns();
	}
}

// Sets the episode of each slow request. Returns the number of episodes.
uint32_t Number(Blame *blame)
{
	uint32_t count = 0;
	uint64_t end_ns = 0;
	for (SlowRequest &r : blame->slow) { // by start
		if (!count || r.due_ns > end_ns + kEpisodeGapNs) {
			count++;
			end_ns = 0;
		}
		r.episode = count - 1;
		end_ns = std::max(end_ns, r.end_ns());
	}
	return count;
}

} // namespace

std::vector<Episode> FindEpisodes(Blame *blame)
{
	std::vector<Episode> episodes(Number(blame));
	const std::vector<SlowRequest> &slow = blame->slow;
	for (size_t i = 0; i < slow.size();) {
		Episode &e = episodes[slow[i].episode];
		e.start_ns = e.since_ns = slow[i].due_ns;
		Times times;
		for (uint32_t episode = slow[i].episode; i < slow.size() && slow[i].episode == episode; i++)
			AddRequest(slow[i], blame->parts, &times, &e);
		SetCauses(times, &e);
		SetHops(times, &e);
	}
	return episodes;
}

} // namespace forktail::analysis
