// SPDX-License-Identifier: MIT
// Which threads held the CPU while a scene's thread was ready to run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "scene.h"

namespace forktail::analysis
{

// Threads of one name count together: ten compiler processes are one disturbance.
struct HolderByName {
	std::string name;
	uint64_t ns = 0;
	std::set<uint32_t> tids; // as their own kernel numbers them
	std::set<int> cpus;
};

// Longest first; empty if the recorder did not see which thread ran.
std::vector<HolderByName> CpuHoldersOf(const Scene &scene);
// "stress-ng (2 threads) for 27.0 ms, x (12) for 9.00 ms", at most three, and what is known of the rest of
// the time that was waited: the CPU was idle, or nothing is known. "" if there is nothing to say.
std::string CpuHoldersText(const Scene &scene, uint64_t waited_ns);
// "python3 (6652)", "stress-ng (2 threads)".
std::string CpuHolderName(const std::string &name, const std::set<uint32_t> &tids);

} // namespace forktail::analysis
