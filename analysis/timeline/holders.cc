// SPDX-License-Identifier: MIT
// See holders.h. A wait was for one CPU, so its holders are the turns that reach into it, each with what it
// has of the wait; several turns of a task count together.
#include "holders.h"

#include <algorithm>
#include <cstring>

#include "common/format/sanitize.h"
#include "lock_waits.h"

namespace forktail::analysis
{

namespace
{

std::vector<CpuHolder> TurnHolders(const Run &run, const ft_span &wait)
{
	if (!wait.off_cpu || !wait.queue_cpu)
		return {};
	const auto cpu = static_cast<uint16_t>(wait.queue_cpu - 1);
	const auto [first, last] = std::ranges::equal_range(run.turns, cpu, {}, &ft_cpu_slice::cpu);
	return CpuHolders({first, last}, wait.start_ns + wait.blocked_ns, wait.start_ns + wait.duration_ns);
}

} // namespace

std::vector<CpuHolder> CpuHolders(std::span<const ft_cpu_slice> turns, uint64_t from_ns, uint64_t to_ns)
{
	std::vector<CpuHolder> holders;
	if (from_ns >= to_ns)
		return holders;
	auto turn = std::partition_point(turns.begin(), turns.end(),
					 [&](const ft_cpu_slice &t) { return t.start_ns < to_ns; });
	while (turn != turns.begin() && (--turn)->end_ns > from_ns) {
		const uint64_t ns = std::min(turn->end_ns, to_ns) - std::max(turn->start_ns, from_ns);
		const auto known = std::ranges::find(holders, turn->tid, &CpuHolder::tid);
		if (known == holders.end())
			holders.push_back({turn->tid, ns, &*turn});
		else
			known->ns += ns;
	}
	// Found from the last one on.
	std::ranges::stable_sort(holders, std::greater<>(), &CpuHolder::ns);
	return holders;
}

bool IsDeferred(const std::vector<CpuHolder> &holders, uint64_t wait_ns)
{
	constexpr char kKsoftirqd[] = "ksoftirqd/";
	return !holders.empty() && holders[0].ns > wait_ns / 2 &&
	       strncmp(holders[0].turn->comm, kKsoftirqd, strlen(kKsoftirqd)) == 0;
}

WaitHolder HolderOf(const Run &run, const ft_span &wait)
{
	if (!wait.off_cpu)
		return {};
	WaitHolder holder;
	holder.deferred = wait.flags & FT_SPAN_KSOFTIRQD;
	if (const auto holders = TurnHolders(run, wait); !holders.empty())
		return {holders[0].tid, std::min<uint64_t>(holders[0].ns, UINT32_MAX),
			holder.deferred || IsDeferred(holders, wait.runnable_ns),
			common::VisibleName(holders[0].turn->comm)};
	if (!IsLockWait(wait)) {
		holder.tid = static_cast<uint32_t>(wait.arg[1]);
		holder.ns = wait.arg[1] >> 32;
		holder.name = DetailOf(run, wait).name;
	}
	return holder;
}

Cause WaitCauseOf(const Run &run, const ft_span &wait)
{
	if (wait.flags & FT_SPAN_THROTTLED)
		return Cause::CpuQuota;
	const bool deferred = IsDeferred(TurnHolders(run, wait), wait.runnable_ns);
	return deferred ? Cause::SoftirqDeferred : WaitCauseOf(wait.flags);
}

std::string NameOf(const Run &run, const ft_span &span)
{
	const std::string &name = DetailOf(run, span).name;
	return name.empty() && span.queue_cpu ? HolderOf(run, span).name : name;
}

} // namespace forktail::analysis
