// SPDX-License-Identifier: MIT
// A percentile without a cause is the percentile of all requests with that cause's part taken out of each.
// Exact where every request that can matter was blamed in full; within a histogram's 0.05 % otherwise.
#include "whatif.h"

#include <algorithm>

namespace forktail
{

namespace
{

// Of all blamed and answered requests, latency less one cause.
std::vector<uint64_t> LatenciesWithout(const Blamed &blamed, const std::vector<Part> &parts, Cause cause)
{
	std::vector<uint64_t> values;
	values.reserve(blamed.size());
	for (const SlowRequest &r : blamed) {
		if (IsError(r.status))
			continue;
		uint64_t value = r.latency_ns;
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
			if (parts[p].cause == cause)
				value -= parts[p].total_ns();
		values.push_back(value);
	}
	return values;
}

Latencies FromHistogram(const LogHistogram &h, const Latencies &all)
{
	Latencies l;
	l.p99 = std::min(h.PercentileFloor(99), all.p99);
	l.p99_9 = std::min(h.PercentileFloor(99.9), all.p99_9);
	l.p99_99 = std::min(h.PercentileFloor(99.99), all.p99_99);
	l.max = std::min(h.max, all.max);
	return l;
}

} // namespace

void FillCauses(const Blamed &blamed, const WithoutHistograms *histograms, uint64_t answered, Blame *blame)
{
	std::array<CauseRow, kCauses> rows = {};
	for (const SlowRequest &r : blame->slow) {
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
			const Part &part = blame->parts[p];
			CauseRow &row = rows[static_cast<size_t>(Index(part.cause))];
			bool seen = false; // at another hop
			for (size_t before = r.first_part; before < p; before++)
				seen |= blame->parts[before].cause == part.cause;
			row.requests += !seen;
			row.direct_ns += part.direct_ns;
			row.queued_ns += part.queued_ns;
		}
	}
	for (int c = 0; c < kCauses; c++) {
		CauseRow &row = rows[static_cast<size_t>(c)];
		row.cause = static_cast<Cause>(c);
		if (row.total_ns() == 0)
			continue;
		row.share = blame->slow_ns
				? static_cast<double>(row.total_ns()) / static_cast<double>(blame->slow_ns)
				: 0;
		if (histograms && !IsStall(row.cause)) {
			row.without = FromHistogram((*histograms)[static_cast<size_t>(c - kStallCauses)],
						    blame->latencies);
		} else {
			std::vector<uint64_t> values = LatenciesWithout(blamed, blame->parts, row.cause);
			TopPercentiles(values.data(), values.size(), answered, &row.without);
		}
		blame->causes.push_back(row);
	}
	std::stable_sort(blame->causes.begin(), blame->causes.end(),
			 [](const CauseRow &a, const CauseRow &b) {
				 bool a_last = a.cause == Cause::Unknown, b_last = b.cause == Cause::Unknown;
				 return a_last != b_last ? b_last : a.total_ns() > b.total_ns();
			 });
}

} // namespace forktail
