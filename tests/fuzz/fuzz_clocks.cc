// SPDX-License-Identifier: MIT
// The estimation of clock offsets from round trips, under libFuzzer. An input is the records of a clock
// recording, of two pairs of clocks in alternation. For every input the map never runs backwards, an unset
// time stays unset, and the bound over an interval is at least the bound at a point in it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "analysis/run/host_clocks.h"

namespace
{

constexpr size_t kProbes = 4096; // more of them find nothing new and take long

void Fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

void CheckMap(const forktail::analysis::ClockMap &map, const std::vector<ft_probe> &probes)
{
	if (map.Map(0) != 0 || map.Map(UINT64_MAX) != UINT64_MAX)
		Fail("what is no time became one");
	for (const ft_probe &p : probes)
		for (uint64_t t : {p.sent_ns, p.received_ns, p.peer_received_ns, p.peer_sent_ns}) {
			if (t >> 62 || t == 0)
				continue;
			if (map.Map(t) > map.Map(t + 1))
				Fail("times run backwards");
			if (map.Bound(t, t) < map.BoundAt(t))
				Fail("a bound is less than itself");
		}
	for (size_t i = 1; i < map.knots().size(); i++)
		if (map.knots()[i - 1].t_ns >= map.knots()[i].t_ns)
			Fail("knots are in no order");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	forktail::analysis::ClockPair pairs[2] = {{"a", "b", {}}, {"c", "b", {}}};
	for (size_t i = 0; i < size / sizeof(ft_probe) && i < kProbes; i++) {
		ft_probe p;
		memcpy(&p, data + i * sizeof p, sizeof p);
		pairs[i % 2].samples.push_back(p);
	}
	for (const forktail::analysis::ClockPair &pair : pairs) {
		uint64_t skipped = 0;
		CheckMap(forktail::analysis::FitClock(pair.samples, &skipped), pair.samples);
		if (skipped > pair.samples.size())
			Fail("more round trips were skipped than exist");
	}
	for (const forktail::analysis::ClockPath &path :
	     forktail::analysis::ConnectClocks("a", {pairs[0], pairs[1]}))
		CheckMap(path.map, pairs[1].samples);
	return 0;
}
