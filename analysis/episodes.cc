// SPDX-License-Identifier: MIT
// Groups slow requests into episodes.
#include "analysis/episodes.h"

#include <algorithm>

namespace forktail
{

std::vector<Episode> FindEpisodes(Blame *blame)
{
	std::vector<Episode> episodes;
	std::vector<std::array<uint64_t, kCauses>> times;
	for (SlowRequest &r : blame->slow) { // by start
		if (episodes.empty() || r.start_ns > episodes.back().end_ns + kEpisodeGapNs) {
			Episode e;
			e.start_ns = e.since_ns = r.start_ns;
			episodes.push_back(e);
			times.push_back({});
		}
		Episode &e = episodes.back();
		r.episode = static_cast<uint32_t>(episodes.size() - 1);
		e.end_ns = std::max(e.end_ns, r.end_ns());
		e.since_ns = std::min(e.since_ns, r.since_ns);
		e.requests++;
		e.worst_ns = std::max(e.worst_ns, r.latency_ns);
		e.time_ns += r.latency_ns;
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
			times.back()[static_cast<size_t>(Index(blame->parts[p].cause))] +=
			    blame->parts[p].total_ns();
	}
	for (size_t i = 0; i < episodes.size(); i++) {
		Episode &e = episodes[i];
		for (int c = 0; c < kCauses; c++)
			if (uint64_t ns = times[i][static_cast<size_t>(c)])
				e.causes.push_back({static_cast<Cause>(c), ns,
						    static_cast<double>(ns) / static_cast<double>(e.time_ns),
						    0});
		std::stable_sort(
		    e.causes.begin(), e.causes.end(),
		    [](const EpisodeCause &a, const EpisodeCause &b) { return a.time_ns > b.time_ns; });
	}
	return episodes;
}

} // namespace forktail
