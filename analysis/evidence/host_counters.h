// SPDX-License-Identifier: MIT
// Describes what counters of the host show: CPU time that the hypervisor took, OOM kills, memory limits of
// cgroups, dropped caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// "the hypervisor took 40.0 ms of CPU time from this host (steal) within 200 ms", of an interval whose
// longest request took worst_ns; "" if less than a quarter of worst_ns was stolen.
std::string StealSentence(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns);

// "the kernel's OOM killer killed 1 process on this host, at a time known to within 100 ms", and the same of
// drop_caches and of the memory limits of the target's cgroups; none if the counters did not grow in the
// interval.
std::vector<std::string> MemoryEventSentences(const Run &run, uint64_t from_ns, uint64_t to_ns);

} // namespace forktail::analysis
