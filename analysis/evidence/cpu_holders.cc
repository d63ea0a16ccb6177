// SPDX-License-Identifier: MIT
// Each wait on the run queue names the thread that held the CPU longest; holders are added up by name.
#include "cpu_holders.h"

#include <algorithm>
#include <map>

#include "analysis/source/hosts.h"
#include "analysis/timeline/holders.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// The span has the holder's name, unless the waiting thread blocked on a file first: then it has the file's.
std::string NameOfHolder(const Scene &scene, uint32_t tid, uint32_t span)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == tid && (!t.role.empty() || !t.comm.empty()))
			return t.role.empty() ? t.comm : t.role;
	const ft_span &s = scene.run.spans[span];
	std::string name;
	if (s.owner != FT_FILE_WRITE && s.owner != FT_FILE_READ)
		name = NameOf(scene.run, s);
	return name.empty() ? "thread" : name;
}

} // namespace

std::vector<HolderByName> CpuHoldersOf(const Scene &scene)
{
	std::map<std::string, HolderByName> by_name;
	for (const auto &[tid, held] : scene.holders) {
		std::string name = NameOfHolder(scene, tid, held.span);
		HolderByName &holder = by_name[name];
		holder.name = name;
		holder.ns += held.ns;
		holder.tids.insert(OwnId(scene.run, tid));
		holder.cpus.insert(OwnCpu(scene.run, scene.run.spans[held.span].cpu));
	}
	std::vector<HolderByName> holders;
	for (auto &[name, holder] : by_name)
		holders.push_back(std::move(holder));
	std::stable_sort(holders.begin(), holders.end(),
			 [](const HolderByName &a, const HolderByName &b) { return a.ns > b.ns; });
	return holders;
}

std::string CpuHoldersText(const std::vector<HolderByName> &holders)
{
	uint64_t all_ns = 0;
	for (const HolderByName &holder : holders)
		all_ns += holder.ns;
	std::string text;
	for (size_t i = 0; i < holders.size() && i < 3; i++) {
		const HolderByName &holder = holders[i];
		if (i && holder.ns * 10 < all_ns)
			break;
		text += (i ? ", " : "") + CpuHolderName(holder.name, holder.tids) + " for " +
			common::FormatDuration(holder.ns);
	}
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
