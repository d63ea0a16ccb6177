// SPDX-License-Identifier: MIT
// The turns of CPUs of the last seconds, from which analysis/timeline/holders.h tells who had one while a
// server's thread was ready to run on it.
#pragma once

#include <unordered_map>
#include <vector>

#include "analysis/timeline/holders.h"

namespace forktail::live
{

class Held
{
public:
	void Add(const ft_cpu_slice &turn);
	// Forgets turns that ended before that.
	void Forget(uint64_t before_ns);

	// Who had the CPU in [from_ns, to_ns), as far as it was told; until the next Add() or Forget().
	std::vector<analysis::CpuHolder> In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const;

private:
	std::unordered_map<uint16_t, std::vector<ft_cpu_slice>> by_cpu_; // by start
};

} // namespace forktail::live
