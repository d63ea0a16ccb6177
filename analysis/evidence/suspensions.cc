// SPDX-License-Identifier: MIT
// Spans and tallies show that a thread was suspended. The recorder's notes name the frozen cgroup and the
// tracer.
#include "suspensions.h"

#include <algorithm>
#include <cmath>

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// The recorder reads a process' cgroup when the process runs again, within two polls of its ring.
constexpr uint64_t kNoteDelay = 200'000'000;

struct Total {
	uint64_t ns = 0, times = 0;
};

Total TotalOf(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.totals[static_cast<size_t>(Index(cause))];
	return {total.ns + static_cast<uint64_t>(total.tallied_ns),
		total.spans + static_cast<uint64_t>(std::llround(total.tallied))};
}

// The cgroup that the scene's process was frozen with: the last note by then, else the first; nullptr without
// a note.
const FrozenGroup *FrozenGroupOf(const Scene &scene)
{
	const FrozenGroup *group = nullptr;
	for (const FrozenGroup &g : scene.run.frozen)
		if (g.pid == scene.thread.tgid && (!group || g.t_ns < scene.to_ns + kNoteDelay))
			group = &g;
	return group;
}

} // namespace

std::string FrozenGroupText(const Scene &scene)
{
	const FrozenGroup *group = FrozenGroupOf(scene);
	std::string text = "cgroup";
	if (group && group->cgroup != "/")
		text += " " + group->cgroup;
	if (group && !group->name.empty())
		text += " (" + group->name + ")";
	return text;
}

std::string FrozenSentence(const Scene &scene)
{
	Total total = TotalOf(scene, Cause::Frozen);
	if (total.ns == 0)
		return "";
	return "the server's " + FrozenGroupText(scene) + " was frozen for " +
	       common::FormatDuration(total.ns) +
	       (total.times > 1 ? " (" + common::FormatCount(total.times) + " times)" : "");
}

std::string TracerText(const Scene &scene)
{
	const CauseTotal &total = scene.totals[static_cast<size_t>(Index(Cause::Ptrace))];
	const ft_span *s = total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
	uint32_t pid = s ? static_cast<uint32_t>(s->arg[0]) : 0;
	auto known = scene.run.tracers.find(pid);
	std::string name = known == scene.run.tracers.end() ? "" : known->second;
	if (!pid)
		return "a tracer";
	return (name.empty() ? "a tracer" : name) + " (pid " + std::to_string(pid) + ")";
}

std::string PtraceSentence(const Scene &scene)
{
	Total total = TotalOf(scene, Cause::Ptrace);
	if (total.ns == 0)
		return "";
	return "was stopped " + common::Plural(std::max<uint64_t>(total.times, 1), "time", "times") + " by " +
	       TracerText(scene) + ", " + common::FormatDuration(total.ns) + " in total";
}

} // namespace forktail::analysis
