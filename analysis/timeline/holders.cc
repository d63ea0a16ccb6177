// SPDX-License-Identifier: MIT
// See holders.h. A wait was for one CPU. Its holders are the CPU slices that overlap it, each with its part
// of the wait; several slices of a task are added.
#include "holders.h"

#include <algorithm>
#include <cstring>

#include "common/format/sanitize.h"
#include "lock_waits.h"

namespace forktail::analysis
{

namespace
{

bool IsKsoftirqd(const ft_cpu_slice &slice)
{
	constexpr char kKsoftirqd[] = "ksoftirqd/";
	return strncmp(slice.comm.raw, kKsoftirqd, strlen(kKsoftirqd)) == 0;
}

// Calls see(slice, its ns) for the slices that overlap [from_ns, to_ns), the last one first.
template <class See>
void EachSlice(std::span<const ft_cpu_slice> slices, uint64_t from_ns, uint64_t to_ns, const See &see)
{
	auto slice = std::partition_point(slices.begin(), slices.end(),
					  [&](const ft_cpu_slice &t) { return t.start_ns < to_ns; });
	while (from_ns < to_ns && slice != slices.begin() && (--slice)->end_ns > from_ns)
		see(*slice, std::min(slice->end_ns, to_ns) - std::max(slice->start_ns, from_ns));
}

// The slices of the CPU for which an off-CPU span waited.
std::span<const ft_cpu_slice> SlicesOf(const Run &run, const ft_span &wait)
{
	if (!wait.off_cpu || !wait.queue_cpu)
		return {};
	const auto cpu = static_cast<uint16_t>(wait.queue_cpu - 1);
	// Not equal_range(), whose result clang 14 cannot compile (script/fuzz).
	const auto first = std::ranges::lower_bound(run.cpu_slices, cpu, {}, &ft_cpu_slice::cpu);
	const auto last = std::ranges::upper_bound(run.cpu_slices, cpu, {}, &ft_cpu_slice::cpu);
	return {first, last};
}

std::vector<CpuHolder> HoldersOf(const Run &run, const ft_span &wait)
{
	return CpuHolders(SlicesOf(run, wait), wait.start_ns + wait.blocked_ns,
			  wait.start_ns + wait.duration_ns);
}

} // namespace

std::vector<CpuHolder> CpuHolders(std::span<const ft_cpu_slice> slices, uint64_t from_ns, uint64_t to_ns)
{
	std::vector<CpuHolder> holders;
	EachSlice(slices, from_ns, to_ns, [&](const ft_cpu_slice &slice, uint64_t ns) {
		const auto known = std::ranges::find(holders, slice.tid, &CpuHolder::tid);
		if (known != holders.end())
			known->ns += ns;
		else if (ns)
			holders.push_back({slice.tid, ns, &slice});
	});
	std::ranges::sort(holders, [](const CpuHolder &a, const CpuHolder &b) {
		return a.ns != b.ns ? a.ns > b.ns : a.slice > b.slice;
	});
	return holders;
}

bool IsDeferred(const std::vector<CpuHolder> &holders, uint64_t wait_ns)
{
	return !holders.empty() && holders[0].ns > wait_ns / 2 && IsKsoftirqd(*holders[0].slice);
}

WaitHolder HolderOf(const Run &run, const ft_span &wait)
{
	if (!wait.off_cpu)
		return {};
	WaitHolder holder;
	holder.deferred = wait.flags & FT_SPAN_KSOFTIRQD;
	if (const auto holders = HoldersOf(run, wait); !holders.empty())
		return {holders[0].tid, std::min<uint64_t>(holders[0].ns, UINT32_MAX),
			holder.deferred || IsDeferred(holders, wait.runnable_ns),
			common::VisibleName(holders[0].slice->comm)};
	if (!IsLockWait(wait)) {
		holder.tid = static_cast<uint32_t>(wait.arg[1]);
		holder.ns = wait.arg[1] >> 32;
		holder.name = DetailOf(run, wait).name;
	}
	return holder;
}

std::vector<WaitHolder> WaitHolders(const Run &run, const ft_span &wait, uint64_t from_ns, uint64_t to_ns)
{
	from_ns = std::max(from_ns, wait.start_ns + wait.blocked_ns);
	to_ns = std::min(to_ns, wait.start_ns + wait.duration_ns);
	std::vector<WaitHolder> holders;
	for (const CpuHolder &holder : CpuHolders(SlicesOf(run, wait), from_ns, to_ns))
		holders.push_back({holder.tid, holder.ns, false, common::VisibleName(holder.slice->comm)});
	if (const WaitHolder longest = HolderOf(run, wait); holders.empty() && longest.tid && from_ns < to_ns)
		holders.push_back({longest.tid, std::min(longest.ns, to_ns - from_ns), false, longest.name});
	return holders;
}

Cause WaitCauseOf(const Run &run, const ft_span &wait)
{
	if (wait.flags & FT_SPAN_THROTTLED)
		return Cause::CpuQuota;
	// There are many spans, and ksoftirqd is rarely a holder.
	bool seen = false;
	EachSlice(SlicesOf(run, wait), wait.start_ns + wait.blocked_ns, wait.start_ns + wait.duration_ns,
		  [&](const ft_cpu_slice &slice, uint64_t) { seen |= IsKsoftirqd(slice); });
	return seen && IsDeferred(HoldersOf(run, wait), wait.runnable_ns) ? Cause::SoftirqDeferred
									  : WaitCauseOf(wait.flags);
}

std::string NameOf(const Run &run, const ft_span &span)
{
	const std::string &name = DetailOf(run, span).name;
	return name.empty() && span.queue_cpu ? HolderOf(run, span).name : name;
}

} // namespace forktail::analysis
