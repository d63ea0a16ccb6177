// SPDX-License-Identifier: MIT
// CPU slices of the last seconds.
#include "cpu_holders.h"

#include <algorithm>

namespace forktail::live
{

namespace
{

constexpr size_t kMost = 1 << 14; // of a CPU

} // namespace

void Held::Add(const ft_cpu_slice &turn)
{
	std::vector<ft_cpu_slice> &turns = by_cpu_[turn.cpu];
	if (turns.size() >= kMost)
		turns.erase(turns.begin(), turns.begin() + kMost / 2);
	auto after = std::upper_bound(turns.begin(), turns.end(), turn.start_ns,
				      [](uint64_t ns, const ft_cpu_slice &t) { return ns < t.start_ns; });
	// A slice that continues is recorded again with a later end.
	if (after != turns.begin() && std::prev(after)->start_ns == turn.start_ns)
		std::prev(after)->end_ns = std::max(std::prev(after)->end_ns, turn.end_ns);
	else
		turns.insert(after, turn);
}

void Held::Forget(uint64_t before_ns)
{
	for (auto &[cpu, turns] : by_cpu_) {
		auto old = std::find_if(turns.begin(), turns.end(),
					[&](const ft_cpu_slice &t) { return t.end_ns >= before_ns; });
		turns.erase(turns.begin(), old);
	}
}

std::vector<analysis::CpuHolder> Held::In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const
{
	auto found = by_cpu_.find(cpu);
	return found == by_cpu_.end() ? std::vector<analysis::CpuHolder>()
				      : analysis::CpuHolders(found->second, from_ns, to_ns);
}

} // namespace forktail::live
