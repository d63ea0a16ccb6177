// SPDX-License-Identifier: MIT
// Holders of CPUs, from turns. A wait was for one CPU, and a CPU's turns don't overlap, so a wait's holders
// are the turns that reach into it, each with what it has of the wait; several turns of a task count
// together.
#include "analysis/run/holders.h"

#include <algorithm>
#include <map>

#include "common/format/sanitize.h"

namespace forktail::analysis
{

namespace
{

// Soft interrupts that are more than the kernel does in passing are ksoftirqd's: a wait for it was one for
// them, if it held the CPU for the most part.
constexpr char kKsoftirqd[] = "ksoftirqd/";

// By CPU and time, each turn once, as far as it is known.
void OrderTurns(std::vector<ft_cpu_slice> *turns)
{
	std::sort(turns->begin(), turns->end(), [](const ft_cpu_slice &a, const ft_cpu_slice &b) {
		if (a.cpu != b.cpu)
			return a.cpu < b.cpu;
		return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
	});
	auto same = [](const ft_cpu_slice &a, const ft_cpu_slice &b) {
		return a.cpu == b.cpu && a.start_ns == b.start_ns;
	};
	turns->erase(std::unique(turns->begin(), turns->end(), same), turns->end());
}

struct Held {
	uint64_t ns = 0;
	const ft_cpu_slice *turn = nullptr; // the holder's last
};

// Who had the CPU longest in [from_ns, to_ns). Of equals, whoever had it last.
Held LongestHolder(const std::vector<ft_cpu_slice> &turns, uint16_t cpu, uint64_t from_ns, uint64_t to_ns)
{
	auto before = [](const ft_cpu_slice &t, std::pair<uint16_t, uint64_t> at) {
		return std::pair(t.cpu, t.start_ns) < at;
	};
	auto end = std::lower_bound(turns.begin(), turns.end(), std::pair(cpu, to_ns), before), first = end;
	std::map<uint32_t, Held> held; // by tid
	for (; first != turns.begin() && first[-1].cpu == cpu && first[-1].end_ns > from_ns; first--) {
		const ft_cpu_slice &turn = first[-1];
		Held &h = held[turn.tid];
		h.ns += std::min(turn.end_ns, to_ns) - std::max(turn.start_ns, from_ns);
		h.turn = h.turn ? h.turn : &turn;
	}
	Held longest;
	for (const auto &[tid, h] : held)
		if (h.ns > longest.ns || (longest.turn && h.ns == longest.ns && h.turn > longest.turn))
			longest = h;
	return longest;
}

} // namespace

void NameHolders(Run *run)
{
	OrderTurns(&run->turns);
	std::map<std::pair<uint32_t, std::string>, uint32_t> named; // (detail, holder) -> the detail of both
	for (ft_span &s : run->spans) {
		if (!s.off_cpu || !s.queue_cpu)
			continue;
		uint64_t end_ns = s.start_ns + s.duration_ns;
		Held held = LongestHolder(run->turns, static_cast<uint16_t>(s.queue_cpu - 1),
					  s.start_ns + s.blocked_ns, end_ns);
		if (!held.turn)
			continue;
		std::string comm = common::VisibleName(held.turn->comm);
		if (comm.starts_with(kKsoftirqd) && held.ns > s.runnable_ns / 2)
			s.flags |= FT_SPAN_KSOFTIRQD;
		s.arg[1] = held.turn->tid | std::min<uint64_t>(held.ns, UINT32_MAX) << 32;
		uint32_t detail = s.detail < run->details.size() ? s.detail : 0;
		if (!run->details[detail].name.empty())
			continue;
		auto [known, is_new] = named.try_emplace({detail, comm}, run->details.size());
		if (is_new)
			run->details.push_back({comm, run->details[detail].stack});
		s.detail = known->second;
	}
}

} // namespace forktail::analysis
