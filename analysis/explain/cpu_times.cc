// SPDX-License-Identifier: MIT
// Spans have their time on the CPU. A tally has its owner's whole time: that of own code and of frames is on
// the CPU, except for blocked times below the minimum span, which are not separate there. A tally of fsync is
// of waits, because without --exact it is no frame.
#include "cpu_times.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

bool IsOnCpu(uint32_t owner)
{
	return owner != FT_FSYNC && (owner <= FT_HARDIRQ || (owner >= FT_SOFTIRQ && owner <= FT_FAULT_OTHER));
}

} // namespace

uint64_t CpuTimes::Within(uint64_t amount_ns, uint64_t start_ns, uint64_t end_ns) const
{
	const uint64_t from_ns = std::max(start_ns, period_.since_ns),
		       to_ns = std::min(end_ns, period_.until_ns);
	if (from_ns == start_ns && to_ns == end_ns)
		return amount_ns;
	if (from_ns >= to_ns)
		return 0;
	return static_cast<uint64_t>(static_cast<double>(amount_ns) * static_cast<double>(to_ns - from_ns) /
				     static_cast<double>(end_ns - start_ns));
}

void CpuTimes::Add(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	auto began = [&](const auto &r) { return r.start_ns >= from_ns && r.start_ns < to_ns; };
	by_thread_.resize(run.threads.size());
	for (size_t t = 0; t < run.threads.size(); t++) {
		const Thread &thread = run.threads[t];
		for (size_t i = thread.first_span; i < thread.first_span + thread.span_count; i++)
			if (const ft_span &s = run.spans[i]; began(s) && !s.off_cpu)
				by_thread_[t] += Within(s.on_cpu_ns, s.start_ns, s.start_ns + s.duration_ns);
		for (size_t i = thread.first_tally; i < thread.first_tally + thread.tally_count; i++)
			if (const ft_tally &tally = run.tallies[i]; began(tally) && IsOnCpu(tally.owner))
				by_thread_[t] += Within(tally.total_ns, tally.start_ns, tally.end_ns);
	}
}

} // namespace forktail::analysis
