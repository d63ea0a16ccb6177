// SPDX-License-Identifier: MIT
// A thread does not see that the hypervisor gave its CPU to another guest: stolen time looks like own code.
// Only the host's counter of stolen time shows it. The counter is read ten times a second, so an interval is
// extended to the readings around it.
#include "steal.h"

#include <algorithm>

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kReadingNs = 100'000'000; // a reading covers the time since the previous one

} // namespace

std::string StealSentence(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns)
{
	for (const Series &series : run.series) {
		if (series.name != "host.cpu.steal")
			continue;
		// Equal readings are recorded once: a value is valid until one reading before the next
		// sample.
		double stolen_ns = 0;
		uint64_t first_ns = 0, last_ns = 0;
		for (size_t i = 0; i < series.samples.size(); i++) {
			const Sample &s = series.samples[i];
			uint64_t begin = s.t_ns - std::min(s.t_ns, kReadingNs), end = run.end_ns;
			if (i + 1 < series.samples.size())
				end = series.samples[i + 1].t_ns - kReadingNs;
			if (end <= from_ns || begin >= to_ns || end <= begin)
				continue;
			begin = std::max(begin, from_ns - std::min(from_ns, kReadingNs));
			end = std::min(end, to_ns + kReadingNs);
			stolen_ns +=
			    s.value / 100 * std::max(run.cpus, 1u) * static_cast<double>(end - begin);
			first_ns = first_ns ? first_ns : begin;
			last_ns = end;
		}
		if (stolen_ns * 4 >= static_cast<double>(worst_ns) && stolen_ns >= 1)
			return "the hypervisor took " +
			       common::FormatDuration(static_cast<uint64_t>(stolen_ns)) +
			       " of CPU time from this host (steal) within " +
			       common::FormatDuration(last_ns - first_ns);
	}
	return "";
}

} // namespace forktail::analysis
