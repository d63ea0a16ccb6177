// SPDX-License-Identifier: MIT
// The CPU slices of the last seconds. analysis/timeline/include/analysis/timeline.h finds in them who held a CPU while a
// server's thread was ready to run.
#pragma once

#include <unordered_map>
#include <vector>

#include "analysis/timeline.h"

namespace forktail::live
{

class CpuSlices
{
public:
	void Add(const ft_cpu_slice &slice);
	// Drops slices that ended before that time.
	void Forget(uint64_t before_ns);

	// Who held the CPU in [from_ns, to_ns), as far as recorded. Valid until the next Add() or Forget().
	std::vector<analysis::CpuHolder> In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const;

private:
	std::unordered_map<uint16_t, std::vector<ft_cpu_slice>> by_cpu_; // by start
};

} // namespace forktail::live
