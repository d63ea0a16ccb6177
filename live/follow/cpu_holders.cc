// SPDX-License-Identifier: MIT
// CPU slices of the last seconds.
#include "cpu_holders.h"

#include <algorithm>

namespace forktail::live
{

namespace
{

constexpr size_t kMostSlices = 1 << 14; // of a CPU

} // namespace

void CpuSlices::Add(const ft_cpu_slice &slice)
{
	std::vector<ft_cpu_slice> &slices = by_cpu_[slice.cpu];
	if (slices.size() >= kMostSlices)
		slices.erase(slices.begin(), slices.begin() + kMostSlices / 2);
	auto after = std::upper_bound(slices.begin(), slices.end(), slice.start_ns,
				      [](uint64_t ns, const ft_cpu_slice &t) { return ns < t.start_ns; });
	// A slice that continues is recorded again with a later end.
	if (after != slices.begin() && std::prev(after)->start_ns == slice.start_ns)
		std::prev(after)->end_ns = std::max(std::prev(after)->end_ns, slice.end_ns);
	else
		slices.insert(after, slice);
}

void CpuSlices::Forget(uint64_t before_ns)
{
	for (auto &[cpu, slices] : by_cpu_) {
		auto old = std::find_if(slices.begin(), slices.end(),
					[&](const ft_cpu_slice &t) { return t.end_ns >= before_ns; });
		slices.erase(slices.begin(), old);
	}
}

std::vector<analysis::CpuHolder> CpuSlices::In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const
{
	auto found = by_cpu_.find(cpu);
	return found == by_cpu_.end() ? std::vector<analysis::CpuHolder>()
				      : analysis::CpuHolders(found->second, from_ns, to_ns);
}

} // namespace forktail::live
