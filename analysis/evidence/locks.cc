// SPDX-License-Identifier: MIT
// The waiting thread's timeline holds a lock wait as what the lock holder did. The sentence is about the lock
// holder, because it caused the wait.
#include "locks.h"

#include <algorithm>
#include <map>

#include "analysis/timeline/locks.h"
#include "busy.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// Sum of a thread's waits for locks of one lock holder.
struct WaitSum {
	uint64_t ns = 0;
	std::vector<Foreign> stretches; // clipped to the scene
};

void AddForeign(const Scene &scene, const Foreign &f, WaitSum *waited)
{
	Foreign clipped = f;
	clipped.start_ns = std::max(f.start_ns, scene.from_ns);
	clipped.end_ns = std::min(f.end_ns, scene.to_ns);
	if (clipped.start_ns >= clipped.end_ns)
		return;
	waited->ns += clipped.end_ns - clipped.start_ns;
	waited->stretches.push_back(clipped);
}

bool InFutex(const Run &run, const Timeline &t, const Foreign &f)
{
	const Piece &piece = t.pieces[PieceAt(t, f.start_ns)];
	return piece.span != kNoSpan && run.spans[piece.span].owner == FT_LOCK_WAIT;
}

std::string Name(const Thread &t)
{
	return (t.comm.empty() ? "thread" : t.comm) + " (" + std::to_string(t.tid) + ")";
}

// The thread that waited longest for locks of the scene's thread, counting what the holder spent on `cause`:
// an index into threads, or kNobody.
std::pair<uint32_t, WaitSum> LongestWaiter(const Scene &scene, Cause cause)
{
	std::pair<uint32_t, WaitSum> longest = {LockWait::kNobody, {}};
	for (const Timeline &t : *scene.timelines) {
		if (t.foreign.empty() || t.thread == scene.timeline.thread)
			continue;
		WaitSum waited;
		EachForeign(t, scene.from_ns, scene.to_ns, [&](const Foreign &f, uint64_t) {
			if (f.thread == scene.timeline.thread && f.cause == cause && InFutex(scene.run, t, f))
				AddForeign(scene, f, &waited);
		});
		if (waited.ns > longest.second.ns)
			longest = {t.thread, std::move(waited)};
	}
	return longest;
}

// "ran work()", "waited in poll()": what a thread did in stretches in which it was not stalled.
std::string HolderActivityText(const Scene &scene, const Timeline &t, const std::vector<Foreign> &stretches)
{
	CauseTimes times = {};
	OwnCodeCount count(scene.run, *scene.activities);
	const Thread &thread = scene.run.threads[t.thread];
	std::map<int, uint64_t> calls; // waits by system call
	uint64_t all_ns = 0, waited_ns = 0;
	for (const Foreign &f : stretches) {
		all_ns += f.end_ns - f.start_ns;
		AddTimes(t, f.start_ns, f.end_ns, &times);
		count.Add(thread, f.start_ns, f.end_ns);
		for (uint32_t i = PieceAt(t, f.start_ns); t.pieces[i].start_ns < f.end_ns; i++) {
			const Piece &p = t.pieces[i];
			if (p.span == kNoSpan || !scene.run.spans[p.span].off_cpu)
				continue;
			uint64_t ns =
			    std::min(f.end_ns, t.pieces[i + 1].start_ns) - std::max(f.start_ns, p.start_ns);
			calls[scene.run.spans[p.span].syscall] += ns;
			waited_ns += ns;
		}
	}
	if (waited_ns > all_ns / 2) {
		int call = std::max_element(calls.begin(), calls.end(), [](const auto &a, const auto &b) {
				   return a.second < b.second;
			   })->first;
		std::string name = SyscallName(scene.run, call);
		return name.empty() ? "waited" : "waited in " + name + "()";
	}
	OwnCode own = count.Result(times[Index(Cause::ServerBusy)]);
	if (own.activities.empty())
		return "ran its own code";
	// For library code, name the function: it shows where the lock is held.
	const ActivityTime &most = own.activities[0];
	if (most.name.starts_with("module/") && !most.stack.empty())
		return "was in " + most.stack + " of " + most.name.substr(sizeof "module/" - 1);
	return ActivityWords({most.name}, {});
}

std::string WaitedText(const Scene &scene, uint32_t waiter, const WaitSum &waited)
{
	return Name(scene.run.threads[waiter]) + " waited " + common::FormatDuration(waited.ns) +
	       " for a lock that this thread held";
}

// The lock holder that the scene's thread waited for longest, and that holder's main cause.
std::string OwnWaitText(const Scene &scene)
{
	std::map<std::pair<uint32_t, Cause>, WaitSum> by_holder;
	for (const Foreign &f :
	     LockForeign(scene.threads, scene.threads->Of(scene.timeline.thread), scene.from_ns, scene.to_ns))
		AddForeign(scene, f, &by_holder[{f.thread, f.cause}]);
	auto longest = std::max_element(by_holder.begin(), by_holder.end(), [](const auto &a, const auto &b) {
		return a.second.ns < b.second.ns;
	});
	if (longest == by_holder.end() || longest->second.ns == 0)
		return "";
	auto [holder, cause] = longest->first;
	return "waited " + common::FormatDuration(longest->second.ns) + " for a lock held by " +
	       Name(scene.run.threads[holder]) + ", which " +
	       (cause == Cause::LockWait
		    ? HolderActivityText(scene, scene.threads->Of(holder), longest->second.stretches)
		    : InfoOf(cause).thread);
}

} // namespace

std::string LockWaiterText(const Scene &scene, Cause cause)
{
	if (scene.timeline.empty() || !scene.timelines)
		return "";
	auto [waiter, waited] = LongestWaiter(scene, cause);
	return waiter == LockWait::kNobody ? "" : WaitedText(scene, waiter, waited);
}

uint64_t LockWaiterNs(const Scene &scene, Cause cause)
{
	return scene.timeline.empty() || !scene.timelines ? 0 : LongestWaiter(scene, cause).second.ns;
}

std::string LockSentence(const Scene &scene)
{
	if (scene.timeline.empty() || !scene.timelines)
		return "";
	auto [waiter, waited] = LongestWaiter(scene, Cause::LockWait);
	if (waiter != LockWait::kNobody)
		return WaitedText(scene, waiter, waited) + "; meanwhile this thread " +
		       HolderActivityText(scene, scene.timeline, waited.stretches);
	// Without a request log no timeline attributes the wait to the lock holder.
	return scene.timeline.foreign.empty() ? OwnWaitText(scene) : "";
}

LockHold LockHoldIn(const Scene &scene)
{
	if (scene.timeline.empty() || !scene.timelines)
		return {};
	auto [waiter, waited] = LongestWaiter(scene, Cause::LockWait);
	if (waiter == LockWait::kNobody)
		return {};
	return {&scene.run.threads[waiter], waited.ns};
}

} // namespace forktail::analysis
