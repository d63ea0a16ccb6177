// SPDX-License-Identifier: MIT
// Blame without a log: event-loop iterations replace requests.
#include "analysis/blame/blamed_requests.h"
#include "analysis/blame/hop_rows.h"
#include "analysis/timeline/apportion.h"
#include "passes.h"
#include "percentile.h"
#include "slowest.h"

namespace forktail::analysis
{

Blame BlameIterations(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
		      const BlameLimits &limits, const Stretches &stretches)
{
	// Calls see(hop, timeline, iteration's index) for each iteration of a hop.
	auto each = [&](auto see) {
		stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
			for (const Timeline &t : timelines) {
				if (t.thread >= run.threads.size())
					continue;
				uint16_t hop =
				    HopOf(run, timelines, static_cast<size_t>(&t - timelines.data()));
				const Thread &thread = run.threads[t.thread];
				for (size_t i = thread.first_iteration;
				     i < thread.first_iteration + thread.iteration_count; i++)
					if (run.iterations[i].start_ns >= from_ns &&
					    run.iterations[i].start_ns < to_ns)
						see(hop, t, i);
			}
		});
	};
	Blame blame;
	blame.from_iterations = true;
	LogHistogram durations;
	unsigned __int128 sum = 0;
	each([&](uint16_t hop, const Timeline &, size_t i) {
		CountServed(hop, 1, &blame);
		if (MayBeMany(run.iterations[i]))
			return;
		durations.Add(run.iterations[i].duration_ns);
		sum += run.iterations[i].duration_ns;
	});
	Percentiles percentiles(durations, sum,
				threshold.percentile > 0 ? threshold.percentile : kUsualThreshold);
	do {
		each([&](uint16_t, const Timeline &, size_t i) {
			if (!MayBeMany(run.iterations[i]))
				percentiles.Add(run.iterations[i].duration_ns);
		});
	} while (!percentiles.EndPass());
	blame.count = durations.count;
	blame.by_status[FT_STATUS_OK] = durations.count;
	blame.latencies = percentiles.Result();
	blame.threshold_ns = threshold.ns ? threshold.ns : percentiles.Further();
	SlowestRequests kept(limits, blame.count);
	kept.SetThreshold(blame.threshold_ns);
	Sheet sheet;
	do {
		each([&](uint16_t hop, const Timeline &t, size_t i) {
			const ft_span &s = run.iterations[i];
			if (MayBeMany(s))
				return;
			SlowRequest r = {s.start_ns, s.duration_ns, s.start_ns, i, 0, 0, 0,
					 0,	     FT_STATUS_OK,  hop};
			CauseTimes direct = {};
			AddTimes(t, s.start_ns, s.start_ns + s.duration_ns, &direct);
			direct[Index(Cause::Network)] += direct[Index(Cause::Idle)];
			AddParts(direct, {}, hop, &sheet);
			AddRequest(&r, &sheet);
			kept.Take(&sheet);
		});
	} while (kept.Again());
	kept.Conclude(nullptr, &blame);
	kept.FillHops(&blame);
	return blame;
}

} // namespace forktail::analysis
