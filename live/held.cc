// SPDX-License-Identifier: MIT
// Turns of CPUs, of the last seconds.
#include "held.h"

#include <algorithm>

#include "analysis/outside.h"

namespace forktail::live
{

namespace
{

constexpr size_t kMost = 1 << 14;	    // turns of a CPU
constexpr size_t kLook = 64;		    // a wait's turns are among the last before its end
constexpr uint64_t kAround = 2'000'000'000; // turns come that much out of order at most

} // namespace

void Held::Add(const ft_turn &turn)
{
	std::vector<ft_turn> &turns = by_cpu_[turn.cpu];
	// One that went on is told again, soon and with a later end.
	for (size_t i = turns.size(); i-- > 0 && turns.size() - i < kLook;) {
		if (turns[i].start_ns != turn.start_ns)
			continue;
		turns[i].end_ns = std::max(turns[i].end_ns, turn.end_ns);
		return;
	}
	if (turns.size() >= kMost)
		turns.erase(turns.begin(), turns.begin() + kMost / 2);
	turns.push_back(turn);
}

void Held::Forget(uint64_t before_ns)
{
	for (auto &[cpu, turns] : by_cpu_) {
		auto old = std::find_if(turns.begin(), turns.end(),
					[&](const ft_turn &t) { return t.end_ns >= before_ns; });
		turns.erase(turns.begin(), old);
	}
}

std::vector<Held::Holder> Held::In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const
{
	std::vector<Holder> holders;
	auto found = by_cpu_.find(cpu);
	if (found == by_cpu_.end())
		return holders;
	const std::vector<ft_turn> &turns = found->second;
	for (size_t i = turns.size(); i-- > 0;) {
		const ft_turn &t = turns[i];
		if (t.end_ns + kAround < from_ns)
			break;
		uint64_t from = std::max(t.start_ns, from_ns), to = std::min(t.end_ns, to_ns);
		if (from >= to || t.tid == 0)
			continue;
		std::string comm = VisibleName(t.comm);
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
