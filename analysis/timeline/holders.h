// SPDX-License-Identifier: MIT
// The holders of the CPU for which a thread waited. The recorder writes the CPU slices as the kernel
// scheduled them. Their meaning for a wait is decided here, for explain and for live tools, so that a better
// rule applies to old recordings too.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "causes.h"

namespace forktail::analysis
{

struct CpuHolder {
	uint32_t tid; // 0: the CPU was idle
	uint64_t ns;
	const ft_cpu_slice *slice; // its last CPU slice
};

// The holders of a CPU in [from_ns, to_ns), longest first; of equal ones the last holder. `slices` are the
// CPU slices of that CPU, by start, not overlapping.
std::vector<CpuHolder> CpuHolders(std::span<const ft_cpu_slice> slices, uint64_t from_ns, uint64_t to_ns);

// Whether ksoftirqd delayed a wait of that length: Cause::SoftirqDeferred.
bool IsDeferred(const std::vector<CpuHolder> &holders, uint64_t wait_ns);

// The longest holder of a wait for a CPU, by the slices in run.cpu_slices; in an old recording, whose
// recorder decided it, as recorded (format.h).
struct WaitHolder {
	uint32_t tid = 0; // 0: none, or unknown
	uint64_t ns = 0;
	bool deferred = false; // the cause of the wait is SoftirqDeferred
	std::string name = {};
};
WaitHolder HolderOf(const Run &run, const ft_span &wait);

// All holders during the runnable part of a wait that is in [from_ns, to_ns), longest first; tid 0 is the
// idle CPU. In an old recording, the longest holder only.
std::vector<WaitHolder> WaitHolders(const Run &run, const ft_span &wait, uint64_t from_ns, uint64_t to_ns);

// The cause of the runnable part of an off-CPU span.
Cause WaitCauseOf(const Run &run, const ft_span &wait);

// The name of a span's detail; for a wait without one, the CPU holder's name; "" if neither is known.
std::string NameOf(const Run &run, const ft_span &span);

} // namespace forktail::analysis
