// SPDX-License-Identifier: MIT
// Who held the CPU that a thread waited for. The recorder writes the turns of that CPU as the kernel gave
// them; what they mean for a wait is decided here, for explain and for what follows a recording, so that a
// recording can be read again by a better rule.
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
	const ft_cpu_slice *turn; // its last
};

// Who had a CPU in [from_ns, to_ns), longest first; of equals whoever had it last. `turns` are of that CPU,
// by start; they don't overlap.
std::vector<CpuHolder> CpuHolders(std::span<const ft_cpu_slice> turns, uint64_t from_ns, uint64_t to_ns);

// Whether soft interrupts in their own thread held up a wait of that length: Cause::SoftirqDeferred.
bool IsDeferred(const std::vector<CpuHolder> &holders, uint64_t wait_ns);

// The longest holder of a wait for a CPU, by the turns in run.turns; of an old recording, whose recorder
// decided it, what that wrote (format.h).
struct WaitHolder {
	uint32_t tid = 0; // 0: nobody, or not known
	uint64_t ns = 0;
	bool deferred = false; // the wait is deferred soft interrupts'
	std::string name = {};
};
WaitHolder HolderOf(const Run &run, const ft_span &wait);

// The cause of the runnable part of an off-CPU span.
Cause WaitCauseOf(const Run &run, const ft_span &wait);

// What a span's detail names; of a wait whose detail names nothing, who held the CPU; "" if neither is known.
std::string NameOf(const Run &run, const ft_span &span);

} // namespace forktail::analysis
