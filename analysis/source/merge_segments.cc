// SPDX-License-Identifier: MIT
// A segment has its recorder's cost since the segment began. The last value counts.
#include "merge_segments.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

void Add(Cost *sum, const Cost &c)
{
	sum->known = true;
	sum->bpf_ns += c.bpf_ns;
	sum->bpf_ns_is_estimate |= c.bpf_ns_is_estimate;
	sum->recorder_cpu_ns += c.recorder_cpu_ns;
	sum->load_cpu_ns += c.load_cpu_ns;
	sum->recorder_rss_bytes = c.recorder_rss_bytes;
	for (const ProgramCost &p : c.programs) {
		auto known = std::find_if(sum->programs.begin(), sum->programs.end(),
					  [&](const ProgramCost &q) { return q.name == p.name; });
		if (known == sum->programs.end()) {
			sum->programs.push_back(p);
			continue;
		}
		known->runs += p.runs;
		known->total_ns += p.total_ns;
		known->ns_per_run =
		    known->runs ? static_cast<double>(known->total_ns) / static_cast<double>(known->runs) : 0;
	}
}

} // namespace

void SegmentMerge::AddCost(const OpenFile *of, const Cost &cost, Cost *sum)
{
	if (cost_of_ && cost_of_ != of)
		Add(&costs_, cost_);
	cost_of_ = of;
	cost_ = cost;
	*sum = costs_;
	Add(sum, cost_);
}

} // namespace forktail::analysis
