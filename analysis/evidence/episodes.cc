// SPDX-License-Identifier: MIT
// One pass over slow requests by start: one belongs to the episode before it unless it begins more than a gap
// after all of that has ended. Time is also added up by cause and hop together, since each cause is shown
// with the process where most of it passed.
#include "episodes.h"

#include <algorithm>
#include <map>

namespace forktail
{

namespace
{

// An episode's time by cause, and by cause and hop where it passed at one.
struct Times {
	std::array<uint64_t, kCauses> by_cause = {};
	std::map<std::pair<uint16_t, Cause>, uint64_t> by_hop;
};

void SetHops(const Times &times, Episode *e)
{
	std::map<uint16_t, uint64_t> hops;
	for (const auto &[where, ns] : times.by_hop)
		hops[where.first] += ns;
	for (const auto &[hop, ns] : hops)
		e->hops.push_back({hop, ns, static_cast<double>(ns) / static_cast<double>(e->time_ns)});
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

} // namespace

std::vector<Episode> FindEpisodes(Blame *blame)
{
	std::vector<Episode> episodes;
	std::vector<Times> times;
	for (SlowRequest &r : blame->slow) { // by start
		if (episodes.empty() || r.start_ns > episodes.back().end_ns + kEpisodeGapNs) {
			Episode e;
			e.start_ns = e.since_ns = r.start_ns;
			episodes.push_back(e);
			times.emplace_back();
		}
		Episode &e = episodes.back();
		r.episode = static_cast<uint32_t>(episodes.size() - 1);
		e.end_ns = std::max(e.end_ns, r.end_ns());
		e.since_ns = std::min(e.since_ns, r.since_ns);
		e.requests++;
		e.worst_ns = std::max(e.worst_ns, r.latency_ns);
		e.time_ns += r.latency_ns;
		AddAnswer(r, &e.answers);
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
			const Part &part = blame->parts[p];
			times.back().by_cause[static_cast<size_t>(Index(part.cause))] += part.total_ns();
			if (part.hop != kNoHop)
				times.back().by_hop[{part.hop, part.cause}] += part.total_ns();
		}
	}
	for (size_t i = 0; i < episodes.size(); i++) {
		Episode &e = episodes[i];
		for (int c = 0; c < kCauses; c++)
			if (uint64_t ns = times[i].by_cause[static_cast<size_t>(c)])
				e.causes.push_back({static_cast<Cause>(c), ns,
						    static_cast<double>(ns) / static_cast<double>(e.time_ns),
						    0, kNoHop});
		std::stable_sort(
		    e.causes.begin(), e.causes.end(),
		    [](const EpisodeCause &a, const EpisodeCause &b) { return a.time_ns > b.time_ns; });
		SetHops(times[i], &e);
	}
	return episodes;
}

} // namespace forktail
