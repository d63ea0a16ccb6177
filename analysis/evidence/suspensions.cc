// SPDX-License-Identifier: MIT
// Spans and tallies show that a thread was suspended. The recorder's notes name the frozen cgroup and the
// tracer.
#include "suspensions.h"

#include <algorithm>
#include <map>

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// The recorder reads a process' cgroup when the process runs again, within two polls of its ring.
constexpr uint64_t kNoteDelay = 200'000'000;

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

// The kernel counts a throttle when it ends, and the recorder reads the counter every 100 ms.
constexpr uint64_t kQuotaLook = 200'000'000;

// The last sample of a cgroup's series before an instant; 0 without one.
double CgroupValue(const Run &run, const std::string &name, const std::string &cgroup, uint64_t t_ns)
{
	for (const Series &series : run.series) {
		auto label = series.labels.find("cgroup");
		if (series.name != name || label == series.labels.end() || label->second != cgroup)
			continue;
		auto after =
		    std::upper_bound(series.samples.begin(), series.samples.end(), t_ns,
				     [](uint64_t ns, const Sample &sample) { return ns < sample.t_ns; });
		return after == series.samples.begin() ? 0 : (after - 1)->value;
	}
	return 0;
}

// The quota that was used up: of those in force on the thread's process, the one whose cgroup the kernel
// throttled longest about then, else the tightest; nullptr if none is known.
const Quota *UsedUp(const Scene &scene)
{
	std::map<std::string, const Quota *> in_force;
	for (const Quota &q : scene.run.quotas) {
		if (q.pid != scene.thread.tgid && q.pid != scene.thread.parent_tgid)
			continue;
		if (q.quota_us && q.period_us && q.t_ns < scene.to_ns)
			in_force[q.cgroup] = &q;
		else if (q.t_ns <= scene.from_ns)
			in_force.erase(q.cgroup);
	}
	const Quota *best = nullptr;
	double best_grown = 0, best_share = 0;
	for (const auto &[cgroup, q] : in_force) {
		double grown = CgroupValue(scene.run, "cgroup.throttled", cgroup, scene.to_ns + kQuotaLook) -
			       CgroupValue(scene.run, "cgroup.throttled", cgroup, scene.from_ns);
		double share = static_cast<double>(q->quota_us) / static_cast<double>(q->period_us);
		if (!best || grown > best_grown || (grown == best_grown && share < best_share)) {
			best = q;
			best_grown = grown;
			best_share = share;
		}
	}
	return best;
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
	const CauseTotal &total = scene.Total(Cause::Frozen);
	if (total.all_ns() == 0)
		return "";
	return "the server's " + FrozenGroupText(scene) + " was frozen for " +
	       common::FormatDuration(total.all_ns()) +
	       (total.times() > 1 ? " (" + common::FormatCount(total.times()) + " times)" : "");
}

std::string TracerText(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Ptrace);
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
	const CauseTotal &total = scene.Total(Cause::Ptrace);
	if (total.all_ns() == 0)
		return "";
	return "was stopped " + common::Plural(std::max<uint64_t>(total.times(), 1), "time", "times") +
	       " by " + TracerText(scene) + ", " + common::FormatDuration(total.all_ns()) + " in total";
}

std::string QuotaSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::CpuQuota);
	const Quota *q = UsedUp(scene);
	std::string text = q ? "the cgroup " + q->cgroup + " had used up its CPU quota (" +
				   common::FormatDuration(q->quota_us * 1000) + " of every " +
				   common::FormatDuration(q->period_us * 1000) + ")"
			     : std::string("the server's cgroup had used up its CPU quota");
	return text + ": the thread waited " + common::FormatDuration(total.all_ns()) + ", throttled " +
	       common::Plural(std::max<uint64_t>(total.times(), 1), "time", "times");
}

std::string QuotaClause(const Scene &scene)
{
	const Quota *q = UsedUp(scene);
	if (!q)
		return "The server's cgroup used up its CPU quota \2 and waited \1";
	return "The cgroup " + q->cgroup + " used up its CPU quota \2 (" +
	       common::FormatDuration(q->quota_us * 1000) + " of every " +
	       common::FormatDuration(q->period_us * 1000) + ") and waited \1";
}

std::string StallPhrase(const Scene &scene, Cause cause, const std::string &duration)
{
	switch (cause) {
	case Cause::Stopped:
		return "was stopped by SIGSTOP for " + duration;
	case Cause::Frozen:
		return "was frozen with its cgroup for " + duration;
	case Cause::Ptrace:
		return "was stopped by " + TracerText(scene) + " for " + duration;
	case Cause::CpuQuota:
		return "was throttled by its CPU quota for " + duration;
	default:
		return "spent " + duration + " in " + CauseName(cause);
	}
}

} // namespace forktail::analysis
