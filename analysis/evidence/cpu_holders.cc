// SPDX-License-Identifier: MIT
// The threads that held the CPU during waits on the run queue, added up by name.
#include "cpu_holders.h"

#include <algorithm>
#include <map>

#include "analysis/run/hosts.h"
#include "analysis/timeline/holders.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// A part of a wait below this share is not printed, unless it is the longest.
constexpr uint64_t kMinPart = 10;

std::string NameOfHolder(const Scene &scene, uint32_t tid, const std::string &name)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == tid && (!t.role.empty() || !t.comm.empty()))
			return t.role.empty() ? t.comm : t.role;
	return name.empty() ? "thread" : name;
}

} // namespace

std::vector<HolderByName> CpuHoldersOf(const Scene &scene)
{
	std::map<std::string, HolderByName> by_name;
	for (const auto &[tid, held] : scene.holders) {
		if (tid == 0)
			continue;
		std::string name = NameOfHolder(scene, tid, held.name);
		HolderByName &holder = by_name[name];
		holder.name = name;
		holder.ns += held.ns;
		holder.tids.insert(OwnId(scene.run, tid));
		holder.cpus.insert(OwnCpu(scene.run, held.cpu));
	}
	std::vector<HolderByName> holders;
	for (auto &[name, holder] : by_name)
		holders.push_back(std::move(holder));
	std::stable_sort(holders.begin(), holders.end(),
			 [](const HolderByName &a, const HolderByName &b) { return a.ns > b.ns; });
	return holders;
}

std::string CpuHoldersText(const Scene &scene, uint64_t waited_ns)
{
	const std::vector<HolderByName> holders = CpuHoldersOf(scene);
	const auto idle = scene.holders.find(0);
	const uint64_t idle_ns = idle == scene.holders.end() ? 0 : idle->second.ns;
	uint64_t held_ns = 0;
	for (const HolderByName &holder : holders)
		held_ns += holder.ns;
	std::string text;
	for (size_t i = 0; i < holders.size() && i < 3; i++) {
		const HolderByName &holder = holders[i];
		if (i && holder.ns * kMinPart < held_ns)
			break;
		text += (i ? ", " : "held by ") + CpuHolderName(holder.name, holder.tids) + " for " +
			common::FormatDuration(holder.ns);
	}
	if (idle_ns * kMinPart > waited_ns)
		text += (text.empty() ? "" : " and ") + std::string("idle for ") +
			common::FormatDuration(idle_ns) + ", until the kernel let the thread run on it";
	const uint64_t known_ns = held_ns + idle_ns;
	if (known_ns < waited_ns && (waited_ns - known_ns) * kMinPart > waited_ns && !text.empty())
		text += "; " + common::FormatDuration(waited_ns - known_ns) +
			" of the wait are unattributed, because no CPU slice of them was recorded";
	return text;
}

std::string CpuHolderName(const std::string &name, const std::set<uint32_t> &tids)
{
	return name + " (" +
	       (tids.size() > 1 ? common::Plural(tids.size(), "thread", "threads")
				: std::to_string(*tids.begin())) +
	       ")";
}

} // namespace forktail::analysis
