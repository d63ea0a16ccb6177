// SPDX-License-Identifier: MIT
// See seconds.h.
#include "seconds.h"

#include <algorithm>

#include "analysis/passes/percentile.h"

namespace forktail::analysis::exports
{

namespace
{

// The bucket of HdrHistogram. It is LogHistogram's without gaps, because each bucket but the first has only
// an upper half.
uint32_t SlotOf(uint64_t value)
{
	constexpr uint64_t highest = (1ull << (FT_HIST_SUB_BITS + FT_HIST_BUCKETS - 1)) - 1;
	const size_t slot = LogHistogram::Slot(std::min(value, highest));
	const size_t bucket = slot >> FT_HIST_SUB_BITS, sub = slot & ((1u << FT_HIST_SUB_BITS) - 1);
	return static_cast<uint32_t>((bucket << (FT_HIST_SUB_BITS - 1)) + sub);
}

static_assert(LogHistogram::kBits == FT_HIST_SUB_BITS);

} // namespace

void SecondOf::Add(uint64_t latency_ns)
{
	count++;
	max_ns = std::max(max_ns, latency_ns);
	slots[SlotOf(latency_ns)]++;
}

void SecondOf::Merge(const SecondOf &other)
{
	count += other.count;
	max_ns = std::max(max_ns, other.max_ns);
	for (const auto &[slot, n] : other.slots)
		slots[slot] += n;
}

std::vector<uint64_t> SecondOf::Percentiles(const std::vector<double> &which) const
{
	std::vector<std::pair<uint32_t, uint32_t>> sorted(slots.begin(), slots.end());
	std::sort(sorted.begin(), sorted.end());
	std::vector<uint64_t> values;
	uint64_t before = 0;
	size_t at = 0;
	for (double p : which) {
		const uint64_t rank = Rank(count, p);
		while (at < sorted.size() && before + sorted[at].second < rank)
			before += sorted[at++].second;
		values.push_back(at < sorted.size()
				     ? std::min(max_ns, ft_histogram_slot_value(sorted[at].first))
				     : max_ns);
	}
	return values;
}

void Seconds::Add(const Run &run)
{
	const Requests &r = run.requests;
	std::pair<uint64_t, uint32_t> last = {UINT64_MAX, 0};
	SecondOf *second = nullptr;
	for (size_t i = r.lead; i < r.size(); i++) {
		const std::pair<uint64_t, uint32_t> key = {r.end_ns[i] / kNs, r.op[i]};
		if (IsError(r.status[i])) {
			errors_[key.first]++;
			continue;
		}
		if (key != last)
			second = &all_[last = key];
		second->Add(r.Latency(i));
	}
}

std::map<uint64_t, SecondOf> Seconds::Together() const
{
	std::map<uint64_t, SecondOf> together;
	for (const auto &[key, second] : all_)
		together[key.first].Merge(second);
	return together;
}

} // namespace forktail::analysis::exports
