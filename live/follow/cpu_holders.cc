// SPDX-License-Identifier: MIT
// Turns of CPUs, of the last seconds.
#include "cpu_holders.h"

#include <algorithm>

#include "common/format/sanitize.h"

namespace forktail::live
{

namespace
{

constexpr size_t kMost = 1 << 14; // turns of a CPU

} // namespace

void Held::Add(const ft_cpu_slice &turn)
{
	std::vector<ft_cpu_slice> &turns = by_cpu_[turn.cpu];
	if (turns.size() >= kMost)
		turns.erase(turns.begin(), turns.begin() + kMost / 2);
	auto after = std::upper_bound(turns.begin(), turns.end(), turn.start_ns,
				      [](uint64_t ns, const ft_cpu_slice &t) { return ns < t.start_ns; });
	// One that went on is told again, with a later end.
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

std::vector<Held::Holder> Held::In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const
{
	std::vector<Holder> holders;
	auto found = by_cpu_.find(cpu);
	if (found == by_cpu_.end())
		return holders;
	const std::vector<ft_cpu_slice> &turns = found->second;
	// A CPU has one turn at a time, so that their ends are in order like their begins.
	auto t = std::partition_point(turns.begin(), turns.end(),
				      [&](const ft_cpu_slice &x) { return x.end_ns <= from_ns; });
	for (; t != turns.end() && t->start_ns < to_ns; ++t) {
		uint64_t from = std::max(t->start_ns, from_ns), to = std::min(t->end_ns, to_ns);
		if (from >= to || t->tid == 0)
			continue;
		std::string comm = common::VisibleName(t->comm);
		auto same = std::find_if(holders.begin(), holders.end(),
					 [&](const Holder &h) { return h.comm == comm; });
		if (same == holders.end())
			holders.push_back({comm, to - from});
		else
			same->ns += to - from;
	}
	std::sort(holders.begin(), holders.end(),
		  [](const Holder &a, const Holder &b) { return a.ns > b.ns; });
	return holders;
}

bool IsDeferred(const std::vector<Held::Holder> &holders, uint64_t wait_ns)
{
	return !holders.empty() && holders[0].comm.rfind("ksoftirqd/", 0) == 0 && holders[0].ns > wait_ns / 2;
}

} // namespace forktail::live
