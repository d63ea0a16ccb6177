/* SPDX-License-Identifier: MIT */
/* What the recorder's programs cost: for each, its runs times the time of a run. The programs count their
 * runs themselves, all of them (bpf/program.h). The time of a run comes from the kernel's statistics, which
 * make every run slower and are therefore on in short windows only. The work of a server changes within a
 * recording, and with it the time of a run, so there are windows from the begin to the end, and the runs
 * since a window before are multiplied by the time of a run in this one. A share of time that is extrapolated
 * would be wrong as soon as the windows meet another rate of runs than the rest of the recording. */
#include "loader/output.h"

enum {
	RUNS_ENOUGH = 20, /* in a window, for the runs before it: fewer are kept for the next one */
	GAP_SHORTEST_MS = 100,
	GAP_LONGEST_MS = 5000,
	GAPS = 10,	   /* a gap is at most a tenth of the time before it */
	ALIGNED_MS = 1000, /* of a gap that is the longest: a slice of requests begins at 0 */
};

uint64_t cost_next_window_ms(uint64_t now_ms)
{
	const uint64_t gap_ms = now_ms / GAPS;
	if (gap_ms >= GAP_LONGEST_MS)
		return (now_ms + GAP_LONGEST_MS - ALIGNED_MS) / GAP_LONGEST_MS * GAP_LONGEST_MS + ALIGNED_MS;
	return now_ms + (gap_ms > GAP_SHORTEST_MS ? gap_ms : GAP_SHORTEST_MS);
}

void cost_window(struct cost_account *a, const struct program_cost *costs, size_t count, uint64_t on_ns)
{
	a->windows++;
	a->measured_ns += on_ns;
	for (size_t i = 0; i < count; i++) {
		struct program_account *p = &a->programs[i];
		const struct program_cost *c = &costs[i];
		const uint64_t sampled = c->sampled - p->sampled;
		if (sampled < RUNS_ENOUGH)
			continue;
		p->ns +=
		    (double)(c->runs - p->runs) * (double)(c->sampled_ns - p->sampled_ns) / (double)sampled;
		p->runs = c->runs;
		p->sampled = c->sampled;
		p->sampled_ns = c->sampled_ns;
	}
}

bool cost_known(const struct cost_account *a)
{
	enum { WINDOWS_ENOUGH = 10 };
	return a->windows >= WINDOWS_ENOUGH;
}

double cost_ns(const struct cost_account *a, size_t i, const struct program_cost *c)
{
	const struct program_account *p = &a->programs[i];
	if (!c->sampled)
		return 0;
	return p->ns + (double)(c->runs - p->runs) * (double)c->sampled_ns / (double)c->sampled;
}
