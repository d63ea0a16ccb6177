// SPDX-License-Identifier: MIT
// Fills a scene in one pass over the pieces and one over the tallies of its interval.
#include "scene.h"

#include <algorithm>

#include "analysis/run/hosts.h"
#include "analysis/timeline/holders.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kCloneThread = 0x10000; // CLONE_THREAD
constexpr uint64_t kForkSlack =
    1'000'000; // a child's record may begin up to this long before its fork's span

// Adds the threads that held the CPU during a wait, as far as known.
void NoteHolders(const ft_span &s, Scene *scene)
{
	for (const WaitHolder &one : WaitHolders(scene->run, s, scene->from_ns, scene->to_ns)) {
		Holder &holder = scene->holders[one.tid];
		holder.ns += one.ns;
		holder.name = one.name;
		holder.cpu = s.cpu;
	}
}

void GatherPieces(Scene *scene)
{
	const Timeline &t = scene->timeline;
	uint64_t from = std::max(scene->from_ns, t.start_ns()), to = std::min(scene->to_ns, t.end_ns());
	if (t.empty() || from >= to)
		return;
	// Skip intervals that belong to another thread. Pieces are cut at their bounds.
	auto foreign = std::partition_point(t.foreign.begin(), t.foreign.end(),
					    [&](const Foreign &f) { return f.end_ns <= from; });
	for (uint32_t i = PieceAt(t, from); t.pieces[i].start_ns < to; i++) {
		const Piece &p = t.pieces[i];
		while (foreign != t.foreign.end() && foreign->end_ns <= p.start_ns)
			++foreign;
		if (p.span == kNoSpan || (foreign != t.foreign.end() && foreign->start_ns <= p.start_ns))
			continue;
		uint64_t ns = std::min(to, t.pieces[i + 1].start_ns) - std::max(from, p.start_ns);
		CauseTotal &total = scene->totals[static_cast<size_t>(Index(p.cause))];
		total.ns += ns;
		// A span with inner spans has several pieces. An off-CPU span inside a frame belongs to the
		// frame, unless it has another cause.
		const ft_span &span = scene->run.spans[p.span];
		if (p.span != total.last &&
		    (!span.off_cpu || span.depth == 0 || p.cause != CauseOfOwner(span.owner))) {
			total.spans++;
			total.last = p.span;
			if (p.cause == Cause::RunQueue)
				NoteHolders(span, scene);
		}
		if (ns > total.longest_ns) {
			total.longest_ns = ns;
			total.longest = p.span;
		}
	}
}

void GatherTallies(Scene *scene)
{
	const ft_tally *first = scene->run.tallies.data() + scene->thread.first_tally;
	const ft_tally *end = first + scene->thread.tally_count;
	// Windows do not overlap, so their ends are sorted like their starts.
	const ft_tally *t =
	    std::partition_point(first, end, [&](const ft_tally &x) { return x.end_ns <= scene->from_ns; });
	for (; t < end && t->start_ns < scene->to_ns; t++) {
		if (t->end_ns <= t->start_ns)
			continue;
		uint64_t from = std::max(t->start_ns, scene->from_ns), to = std::min(t->end_ns, scene->to_ns);
		double part = static_cast<double>(to - from) / static_cast<double>(t->end_ns - t->start_ns);
		CauseTotal &total = scene->totals[static_cast<size_t>(Index(CauseOfOwner(t->owner)))];
		total.tallied += part * t->count;
		total.tallied_ns += part * static_cast<double>(t->total_ns);
	}
}

} // namespace

void Gather(Scene *scene)
{
	GatherPieces(scene);
	GatherTallies(scene);
}

OwnCode OwnCodeIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	OwnCodeCount count(scene.run, *scene.activities);
	CauseTimes times = {};
	count.Add(scene.thread, from_ns, to_ns);
	AddTimes(scene.timeline, from_ns, to_ns, &times);
	return count.Result(times[Index(Cause::ServerBusy)]);
}

std::string SyscallText(const Scene &scene, int number)
{
	if (number < 0)
		return "the kernel";
	std::string name = SyscallName(scene.run, number);
	return name.empty() ? "system call " + std::to_string(number) : name + "()";
}

int SyncCall(const ft_span &s)
{
	return s.off_cpu ? s.syscall : static_cast<int>(s.arg[1]);
}

std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	const ft_span *longest = nullptr;
	const Thread *whose = nullptr;
	for (uint32_t i : scene.landmarks.fsyncs) {
		const ft_span &s = scene.run.spans[i];
		if (s.start_ns >= to_ns || SpanEnd(s) <= from_ns || s.tid == scene.thread.tid ||
		    (longest && longest->duration_ns >= s.duration_ns))
			continue;
		for (const Thread &t : scene.run.threads) {
			if (t.tid == s.tid &&
			    (t.tgid == scene.thread.tgid || t.parent_tgid == scene.thread.tgid)) {
				longest = &s;
				whose = &t;
			}
		}
	}
	if (!longest)
		return "";
	return "; " + (whose->role.empty() ? whose->comm : whose->role) + " (" + std::to_string(whose->tid) +
	       ") was in " + SyscallText(scene, SyncCall(*longest)) + " for " +
	       common::FormatDuration(longest->duration_ns);
}

std::string NameOfThread(const Run &run, const Thread &thread)
{
	std::string name = thread.role.empty() ? thread.comm : thread.role;
	for (const Thread &t : run.threads)
		if (t.tid == thread.tgid && t.tgid == thread.tgid && t.tid != thread.tid && !t.comm.empty() &&
		    t.comm != name)
			name = t.comm + "'s " + name;
	return (name.empty() ? "thread" : name) + " (" + std::to_string(OwnId(run, thread.tid)) + ")";
}

// Decided by the child's record. If its event was dropped, by clone's flags; clone3 passes none in registers.
bool MadeThread(const Scene &scene, const ft_span &fork)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == fork.arg[0] && t.start_ns + kForkSlack >= fork.start_ns &&
		    t.start_ns <= SpanEnd(fork))
			return t.tgid == scene.thread.tgid;
	return fork.arg[1] & kCloneThread;
}

const Thread *ChildOf(const Scene &scene, const ft_span &fork)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == fork.arg[0] && (t.flags & FT_THREAD_CHILD))
			return &t;
	return nullptr;
}

const ft_span *LongestFrame(const Scene &scene, const std::vector<uint32_t> &frames)
{
	const ft_span *longest = nullptr;
	for (uint32_t i : frames) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid == scene.thread.tid && s.start_ns < scene.to_ns && SpanEnd(s) > scene.from_ns &&
		    (!longest || s.duration_ns > longest->duration_ns))
			longest = &s;
	}
	return longest;
}

std::string ForkCommandOf(const Thread &child)
{
	return child.role == "snapshot child"	   ? "BGSAVE"
	       : child.role == "AOF rewrite child" ? "BGREWRITEAOF"
						   : "";
}

const Thread *LiveChild(const Scene &scene)
{
	for (const Thread &t : scene.run.threads)
		if ((t.flags & FT_THREAD_CHILD) && (t.flags & FT_THREAD_MAIN) &&
		    t.parent_tgid == scene.thread.tgid && t.start_ns < scene.to_ns &&
		    t.end_ns > scene.from_ns)
			return &t;
	return nullptr;
}

} // namespace forktail::analysis
