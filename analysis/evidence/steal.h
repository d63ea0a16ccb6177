// SPDX-License-Identifier: MIT
// Describes CPU time that the hypervisor took from the host.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// "the hypervisor took 40.0 ms of CPU time from this host (steal) within 200 ms", of an interval whose
// longest request took worst_ns; "" if less than a quarter of worst_ns was stolen.
std::string StealSentence(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns);

} // namespace forktail::analysis
