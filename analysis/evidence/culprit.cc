// SPDX-License-Identifier: MIT
// Each family of causes has a function that records an actor as a clause. Times of the same clause are added
// up over episodes.
#include "culprit.h"

#include <algorithm>
#include <cmath>

#include "analysis/source/hosts.h"
#include "analysis/timeline/holders.h"
#include "analysis/timeline/waits.h"
#include "busy.h"
#include "common/format/units.h"
#include "cpu_holders.h"
#include "locks.h"
#include "server_reports.h"
#include "suspensions.h"

namespace forktail::analysis
{

namespace
{

// A TLS handshake takes 200 us of CPU or more, a small encrypted reply about 1 us. TLS code that ran longer
// than this per accepted connection did handshakes.
constexpr uint64_t kLeastHandshakeNs = 50'000;
// An actor with less than this part of the first actor's time is not named.
constexpr double kMinActorPart = 0.2;
// A clause that covers less than this part of the total time also names the total.
constexpr double kMainPart = 0.8;

uint64_t CauseTotalNs(const CauseTotal &total)
{
	return total.ns + static_cast<uint64_t>(total.tallied_ns);
}

uint64_t CauseTotalTimes(const CauseTotal &total)
{
	return total.spans + static_cast<uint64_t>(std::llround(total.tallied));
}

const CauseTotal &CauseTotalOf(const Scene &scene, Cause cause)
{
	return scene.totals[static_cast<size_t>(Index(cause))];
}

// "redis-server (9163)"; "memcached's mc-worker (6615)" if the process has another name than the thread.
std::string NameOfThread(const Run &run, const Thread &thread)
{
	std::string name = thread.role.empty() ? thread.comm : thread.role;
	for (const Thread &t : run.threads)
		if (t.tid == thread.tgid && t.tgid == thread.tgid && t.tid != thread.tid && !t.comm.empty() &&
		    t.comm != name)
			name = t.comm + "'s " + name;
	return (name.empty() ? "thread" : name) + " (" + std::to_string(OwnId(run, thread.tid)) + ")";
}

void Replace(const std::string &mark, const std::string &by, std::string *text)
{
	if (size_t at = text->find(mark); at != std::string::npos)
		text->replace(at, mark.size(), by);
}

std::string CpusText(const std::set<int> &cpus)
{
	return cpus.size() == 1 ? "CPU " + std::to_string(*cpus.begin()) : "its CPUs";
}

std::string TimesText(uint64_t times)
{
	return times > 1 ? common::FormatCount(times) + " times" : "once";
}

// The clause for what stopped a thread of the load generator from running.
std::string ClientClause(const Scene &client, Cause cause)
{
	switch (cause) {
	case Cause::RunQueue: {
		const std::vector<HolderByName> holders = CpuHoldersOf(client);
		return "The load generator waited \1 for a CPU" +
		       (holders.empty()
			    ? ""
			    : " that " + CpuHolderName(holders[0].name, holders[0].tids) + " held");
	}
	case Cause::Stopped:
		return "The load generator was stopped by SIGSTOP for \1";
	case Cause::Frozen:
		return "The load generator was frozen with its cgroup for \1";
	case Cause::Ptrace:
		return TracerText(client) + " stopped the load generator for \1";
	case Cause::CpuQuota:
		return "The load generator was throttled by its CPU quota for \1";
	default:
		return "The load generator spent \1 in " + std::string(CauseName(cause));
	}
}

} // namespace

CulpritFinder::Actor &CulpritFinder::Note(const std::string &clause, uint64_t ns, uint64_t times)
{
	Actor &actor = actors_[clause];
	actor.ns += ns;
	actor.times += times;
	actor.longest_ns = std::max(actor.longest_ns, ns);
	return actor;
}

void CulpritFinder::AddForks(const Scene &scene)
{
	for (uint32_t i : scene.landmarks.forks) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid != scene.thread.tid || s.start_ns >= scene.to_ns || SpanEnd(s) <= scene.from_ns)
			continue;
		std::string purpose = "a child process";
		const Thread *child = ChildOf(scene, s);
		if (MadeThread(scene, s))
			purpose = "a thread";
		else if (child && child->role == "snapshot child")
			purpose = "BGSAVE";
		else if (child && child->role == "AOF rewrite child")
			purpose = "BGREWRITEAOF";
		Note(purpose, s.duration_ns, 1);
	}
}

void CulpritFinder::AddFaults(const Scene &scene)
{
	const CauseTotal &total = CauseTotalOf(scene, cause_);
	const std::string words = InfoOf(cause_).words;
	std::string clause = "\4" + words, child;
	if (cause_ == Cause::CowCopy || cause_ == Cause::CowReuse)
		if (const Thread *t = LiveChild(scene))
			child = " while the " + (t->role.empty() ? t->comm : t->role) + " ran";
	Note(clause + child + " took \1", CauseTotalNs(total), CauseTotalTimes(total));
}

void CulpritFinder::AddFiles(const Scene &scene)
{
	const CauseTotal &total = CauseTotalOf(scene, cause_);
	if (total.longest == kNoSpan)
		return;
	const ft_span &s = scene.run.spans[total.longest];
	std::string clause = SyscallText(scene, s.syscall);
	if (const std::string name = NameOf(scene.run, s); !name.empty())
		clause += std::string(" ") + InfoOf(cause_).words + " " + name;
	clause += " waited \1";
	if (!OtherFsyncText(scene, s.start_ns, SpanEnd(s)).empty())
		clause += " behind fsync";
	Note(clause, CauseTotalNs(total), CauseTotalTimes(total));
}

void CulpritFinder::AddFsyncs(const Scene &scene)
{
	const CauseTotal &total = CauseTotalOf(scene, cause_);
	std::string call = "fsync()";
	uint64_t longest_ns = 0;
	for (uint32_t i : scene.landmarks.fsyncs) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid != scene.thread.tid || s.start_ns >= scene.to_ns || SpanEnd(s) <= scene.from_ns ||
		    s.duration_ns <= longest_ns)
			continue;
		longest_ns = s.duration_ns;
		call = SyscallText(scene, SyncCall(s));
	}
	Note(call + " by " + thread_ + " took \1", CauseTotalNs(total), CauseTotalTimes(total));
}

void CulpritFinder::AddWaits(const Scene &scene)
{
	const CauseTotal &total = CauseTotalOf(scene, cause_);
	for (const HolderByName &holder : CpuHoldersOf(scene)) {
		Actor &actor = Note(holder.name, holder.ns, 1);
		actor.tids.insert(holder.tids.begin(), holder.tids.end());
		if (total.longest != kNoSpan)
			actor.cpus.insert(OwnCpu(scene.run, scene.run.spans[total.longest].cpu));
	}
}

void CulpritFinder::AddInterrupts(const Scene &scene)
{
	const CauseTotal &total = CauseTotalOf(scene, cause_);
	const std::string name = CauseName(cause_);
	std::string clause = "Hardware interrupts took \1 of the time of \3";
	if (cause_ == Cause::SoftirqDeferred)
		clause = "ksoftirqd held \3 for \1 while " + thread_ + " was ready to run";
	else if (size_t slash = name.find('/'); slash != std::string::npos)
		clause = "Soft interrupts (" + name.substr(slash + 1) + ") took \1 of the time of \3";
	Actor &actor = Note(clause, CauseTotalNs(total), CauseTotalTimes(total));
	if (total.longest != kNoSpan)
		actor.cpus.insert(OwnCpu(scene.run, scene.run.spans[total.longest].cpu));
}

void CulpritFinder::AddBlocked(const Scene &scene)
{
	const CauseTotal &total = CauseTotalOf(scene, cause_);
	const ft_span *s = total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
	const std::string call = s ? SyscallText(scene, s->syscall) : std::string(CauseName(cause_));
	std::string clause;
	switch (cause_) {
	case Cause::Stopped:
		clause = " was stopped by SIGSTOP for \1";
		break;
	case Cause::Reclaim:
		clause = " freed memory itself for \1 (direct reclaim)";
		break;
	case Cause::Compaction:
		clause = " compacted memory itself for \1";
		break;
	case Cause::MmapLock:
		clause = " waited \1 for its process' mmap lock";
		break;
	case Cause::Sleep:
		clause = " slept in " + call + " for \1";
		break;
	default:
		clause = " was blocked in " + call + " for \1";
	}
	Note(thread_ + clause, CauseTotalNs(total), CauseTotalTimes(total));
}

void CulpritFinder::AddBusy(const Scene &scene)
{
	IterationCalls calls;
	uint64_t count = 0;
	many_ |= !CountIterations(scene, &count, &calls);
	iterations_ += count;
	accepted_ += calls.accepted;
	for (const BusyGroup &group : BusyGroupsOf(scene.own_code))
		Note(BusyActor(group.names), group.time_ns, 0);
}

void CulpritFinder::AddClient(const Scene &scene, uint64_t late_ns)
{
	const EpisodeAnswers *answers = scene.answers;
	if (answers && answers->unread_ns * 2 > late_ns) {
		Note("The load generator left replies unread for \1, added up over requests",
		     answers->unread_ns, 1);
		return;
	}
	if (!scene.client) {
		Note("The load generator sent requests late, \1 added up over requests", late_ns, 1);
		return;
	}
	const Scene &client = *scene.client;
	CauseTimes times = {};
	AddTimes(client.timeline, client.from_ns, client.to_ns, &times);
	Cause most = Cause::ServerBusy;
	for (int i = 0; i < kTimelineCauses; i++)
		if (IsStall(static_cast<Cause>(i)) && !IsInterrupt(static_cast<Cause>(i)) &&
		    times[static_cast<size_t>(i)] > times[static_cast<size_t>(Index(most))])
			most = static_cast<Cause>(i);
	Note(most == Cause::ServerBusy ? "The load generator's own code ran for \1"
				       : ClientClause(client, most),
	     times[static_cast<size_t>(Index(most))], 1);
}

void CulpritFinder::Add(const Scene &whole, const EpisodeCause &cause)
{
	// The scenes of two episodes may overlap, because a cause may begin before its requests are due.
	// Count no time twice.
	Scene scene = whole;
	uint64_t &until_ns = until_ns_[&whole.timeline];
	if (scene.from_ns < until_ns) {
		scene.from_ns = until_ns;
		scene.totals = {};
		scene.holders.clear();
		if (scene.from_ns >= scene.to_ns)
			return;
		Gather(&scene);
		if (scene.activities)
			scene.own_code = OwnCodeIn(scene, scene.from_ns, scene.to_ns);
	}
	until_ns = std::max(until_ns, scene.to_ns);
	CauseTimes times = {};
	AddTimes(scene.timeline, scene.from_ns, scene.to_ns, &times);
	const uint64_t ns = times[static_cast<size_t>(Index(cause_))];
	all_ns_ += ns;
	if (thread_.empty())
		thread_ = NameOfThread(scene.run, scene.thread);
	switch (InfoOf(cause_).telling) {
	case SentenceKind::Fork:
		return AddForks(scene);
	case SentenceKind::Faults:
		return AddFaults(scene);
	case SentenceKind::File:
		return AddFiles(scene);
	case SentenceKind::Fsync:
		return AddFsyncs(scene);
	case SentenceKind::RunQueue:
		return AddWaits(scene);
	case SentenceKind::Interrupt:
		return AddInterrupts(scene);
	case SentenceKind::Blocked:
		return AddBlocked(scene);
	case SentenceKind::Busy:
		return AddBusy(scene);
	case SentenceKind::Client:
		return AddClient(scene, cause.time_ns);
	case SentenceKind::Lock:
		if (const LockHold hold = LockHoldIn(scene); hold.ns)
			Note(hold.waiter + " waited \1 for a lock that " + hold.holder + " held", hold.ns, 1);
		else
			AddBlocked(scene);
		return;
	case SentenceKind::Frozen:
		Note("The server's " + FrozenGroupText(scene) + " was frozen for \1", ns,
		     CauseTotalTimes(CauseTotalOf(scene, cause_)));
		return;
	case SentenceKind::Ptrace:
		Note(TracerText(scene) + " stopped " + NameOfThread(scene.run, scene.thread) + " for \1", ns,
		     CauseTotalTimes(CauseTotalOf(scene, cause_)));
		return;
	case SentenceKind::Quota:
		Note(QuotaClause(scene), ns, CauseTotalTimes(CauseTotalOf(scene, cause_)));
		return;
	case SentenceKind::IoThread:
		Note(NameOfThread(scene.run, scene.thread) + " worked for \1 while the main thread waited",
		     cause.thread_ns, 1);
		return;
	case SentenceKind::None:
		if (uint64_t outage_ns = 0; cause_ == Cause::NoServer) {
			const std::string clause =
			    OutageClause(scene.run, scene.from_ns, scene.to_ns, &outage_ns);
			if (outage_ns && !actors_.contains(clause))
				Note(clause, outage_ns, 1);
		}
		return;
	case SentenceKind::Network:
	case SentenceKind::Unknown:
		return;
	}
}

const std::pair<const std::string, CulpritFinder::Actor> *CulpritFinder::Top() const
{
	const auto top = std::max_element(actors_.begin(), actors_.end(), [](const auto &a, const auto &b) {
		return a.second.ns < b.second.ns;
	});
	return top == actors_.end() ? nullptr : &*top;
}

std::string CulpritFinder::ForksText() const
{
	const auto *top = Top();
	uint64_t ns = 0, times = 0, longest_ns = 0;
	std::string purposes = top->first;
	for (const auto &[purpose, actor] : actors_) {
		ns += actor.ns;
		times += actor.times;
		longest_ns = std::max(longest_ns, actor.longest_ns);
		if (purpose != top->first &&
		    static_cast<double>(actor.ns) > kMinActorPart * static_cast<double>(top->second.ns))
			purposes += " and " + purpose;
	}
	if (times == 1)
		return (purposes == "a thread" ? "clone() of " : "fork() for ") + purposes + " took " +
		       common::FormatDuration(ns);
	return common::FormatCount(times) +
	       (purposes == "a thread" ? " clone() calls for " : " fork() calls for ") +
	       (purposes == "a thread"		? "threads"
		: purposes == "a child process" ? "child processes"
						: purposes) +
	       " took " + common::FormatDuration(ns) + ", the longest " + common::FormatDuration(longest_ns);
}

std::string CulpritFinder::WaitsText() const
{
	const auto *top = Top();
	const std::string ns = common::FormatDuration(all_ns_);
	if (!top)
		return thread_ + " waited " + ns + " on the run queue";
	if (static_cast<double>(top->second.ns) >= kMainPart * static_cast<double>(all_ns_))
		return CpuHolderName(top->first, top->second.tids) + " held " + CpusText(top->second.cpus) +
		       " for " + common::FormatDuration(top->second.ns) + " while " + thread_ +
		       " was ready to run";
	std::vector<std::pair<uint64_t, std::string>> holders;
	for (const auto &[name, actor] : actors_)
		holders.push_back({actor.ns, CpuHolderName(name, actor.tids)});
	std::sort(holders.rbegin(), holders.rend());
	std::string names = holders[0].second;
	if (holders.size() == 2)
		names += " and " + holders[1].second;
	else if (holders.size() > 2)
		names += ", " + holders[1].second + " and others";
	return thread_ + " waited " + ns + " for a CPU that " + names + " held";
}

std::string CulpritFinder::BusyText() const
{
	const auto *top = Top();
	std::string in;
	if (iterations_ && !many_)
		in = " in " + common::Plural(iterations_, "event-loop iteration", "event-loop iterations");
	if (!top)
		return thread_ + " ran its own code for " + common::FormatDuration(all_ns_) + in +
		       " (no CPU samples say which)";
	const double share =
	    static_cast<double>(top->second.ns) / static_cast<double>(std::max<uint64_t>(all_ns_, 1));
	std::string subject = top->first;
	if (subject == kTls && accepted_ && top->second.ns / accepted_ >= kLeastHandshakeNs)
		subject = "TLS handshakes of about " + common::FormatCount(accepted_) + " connections";
	if (share >= 0.9)
		return subject + " took " + common::FormatDuration(top->second.ns) + " of CPU" + in;
	if (share >= 0.5)
		return subject + " took " + common::FormatDuration(top->second.ns) + " of the " +
		       common::FormatDuration(all_ns_) + " that " + thread_ + " ran its own code";
	std::vector<std::pair<uint64_t, std::string>> parts;
	for (const auto &[name, actor] : actors_)
		parts.push_back({actor.ns, name});
	std::sort(parts.rbegin(), parts.rend());
	std::string text;
	for (size_t i = 0; i < parts.size() && i < 2; i++)
		text +=
		    (i ? ", " : "") + parts[i].second + " " +
		    common::FormatShare(static_cast<double>(parts[i].first) / static_cast<double>(all_ns_));
	return thread_ + " ran its own code for " + common::FormatDuration(all_ns_) + " (" + text + ")";
}

std::string CulpritFinder::Text() const
{
	const auto *top = Top();
	switch (cause_) {
	case Cause::RunQueue:
		return all_ns_ ? WaitsText() : "";
	case Cause::ServerBusy:
		return all_ns_ ? BusyText() : "";
	default:
		break;
	}
	if (!top || !top->second.ns)
		return "";
	if (cause_ == Cause::Fork)
		return ForksText();
	std::string text = top->first;
	// A clause of page faults begins with their number.
	if (text[0] == '\4') {
		const size_t bar = text.find('|');
		const std::string words = InfoOf(cause_).words;
		const std::string one = text.substr(1, bar - 1), many = words.substr(words.find('|') + 1);
		text = common::Plural(top->second.times, one.c_str(), many.c_str()) +
		       text.substr(1 + words.size());
	}
	Replace("\1", common::FormatDuration(top->second.ns), &text);
	Replace("\2", TimesText(top->second.times), &text);
	Replace("\3", CpusText(top->second.cpus), &text);
	if (static_cast<double>(top->second.ns) < kMainPart * static_cast<double>(all_ns_))
		text += ", part of " + common::FormatDuration(all_ns_);
	return text;
}

} // namespace forktail::analysis
