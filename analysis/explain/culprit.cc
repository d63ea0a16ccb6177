// SPDX-License-Identifier: MIT
// The culprit of a cause, in one clause.
//
// Each family of causes has a function that records an actor as a clause. Times of the same clause are added
// up over episodes.
#include "scene.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/format.h"

namespace forktail::analysis
{

namespace
{

// A purpose with less than this part of all forks' time is not named.
constexpr double kMinActorPart = 0.2;
// Who has less than this part of the time did not act alone.
constexpr double kMainPart = 0.8;
// From kNearlyAll of the server's own code on, an activity is named alone; from kHalf on, with the total.
constexpr double kNearlyAll = 0.9, kHalf = 0.5;
// CPU holders that are listed where they are known for little of the time.
constexpr size_t kHoldersShown = 3;

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

// "2 fork() calls", "clone()".
std::string CallsText(uint64_t times, const std::string &call)
{
	return times > 1 ? common::FormatCount(times) + " " + call + " calls" : call;
}

// What ran in the scene's longest iterations, if it was the same command in most of its time: one for each of
// these iterations, and an empty one for time in which it is not known what ran.
std::vector<Ran> RansOf(const Scene &scene)
{
	constexpr size_t most = 8;
	std::vector<const ft_span *> longest;
	uint64_t all_ns = 0, seen_ns = 0, same_ns = 0;
	EachIteration(scene, [&](const ft_span &s) {
		all_ns += s.duration_ns;
		longest.push_back(&s);
	});
	const size_t count = std::min(most, longest.size());
	std::ranges::partial_sort(longest, longest.begin() + static_cast<ptrdiff_t>(count), std::greater(),
				  &ft_span::duration_ns);
	std::vector<Ran> rans;
	for (size_t i = 0; i < count && seen_ns * 10 < all_ns * 9; i++) {
		Ran ran = RanIn(scene, *longest[i]);
		seen_ns += longest[i]->duration_ns;
		const bool same =
		    !i || (ran.command == rans[0].command && ran.arguments == rans[0].arguments);
		if (same)
			same_ns += longest[i]->duration_ns;
		if (same || ran.command.empty())
			rans.push_back(same ? std::move(ran) : Ran());
	}
	if (rans.empty() || rans[0].command.empty() || same_ns * 2 < all_ns)
		rans.clear();
	else if (seen_ns * 10 < all_ns * 9) // what ran in the rest, and who sent it, is not known
		rans.emplace_back();
	// Samples may cut one command's iteration into pieces: a very large request is of all of them.
	if (count && longest[0]->flags & FT_SPAN_SAMPLED && (rans.empty() || rans[0].arguments.empty())) {
		ft_span whole = *longest[0];
		whole.start_ns = scene.from_ns;
		whole.duration_ns = scene.to_ns - scene.from_ns;
		if (Ran in_whole = RanIn(scene, whole); !in_whole.arguments.empty())
			rans = {in_whole};
	}
	return rans;
}

// Whether an activity may be of this command. Code of a program without symbols may be of any.
bool MayBeIts(const std::string &activity, const Ran &ran)
{
	if (ran.command.empty())
		return false;
	constexpr std::string_view of_large[] = {"kernel/send",	  "kernel/receive", "kernel/futex",
						 "kernel/memory", "allocate",	    "system-call",
						 "event-loop",	  "parse"};
	if (!ran.arguments.empty() && std::ranges::find(of_large, activity) != std::end(of_large))
		return true;
	return activity.starts_with("command") || activity == "script"
		   ? MayBe(activity, ran.command)
		   : activity.starts_with("module/") && activity.find(".so") == std::string::npos;
}

// " (GRAPH.QUERY)" after the name of a module's file, if the slow log has a command of a module that took
// this time; else "". Only names of modules' commands have a dot.
std::string ModuleCommand(const Scene &scene, const BusyGroup &group)
{
	if (!group.names[0].starts_with("module/") || !group.names[0].ends_with(".so"))
		return "";
	const std::string command = SlowCommand(scene, group.time_ns / 2);
	return command.find('.') == std::string::npos ? "" : " (" + command + ")";
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

// The scene's time of the cause, with the command in which it was.
CulpritFinder::Actor &CulpritFinder::NoteIn(const Scene &scene, const std::string &clause)
{
	const CauseTotal &total = scene.Total(cause_);
	Actor &actor = Note(clause, total.all_ns(), total.times());
	actor.during[MainCommandIn(scene, cause_)] += total.all_ns();
	return actor;
}

void CulpritFinder::AddForks(const Scene &scene)
{
	for (uint32_t i : scene.landmarks.forks) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid != scene.thread.tid || s.start_ns >= scene.to_ns || SpanEnd(s) <= scene.from_ns ||
		    !forks_.insert({s.tid, s.start_ns}).second)
			continue;
		const Thread *child = ChildOf(scene, s);
		std::string purpose = child ? ForkCommandOf(*child) : "";
		if (const std::string sync = child ? SyncText(scene, s, *child) : ""; !sync.empty())
			purpose = (purpose == "BGSAVE" ? "a snapshot" : purpose) + " (" + sync + ")";
		if (MadeThread(scene, s))
			purpose = "a thread";
		Note(purpose.empty() ? "a child process" : purpose, s.duration_ns, 1).subject = purpose;
	}
}

void CulpritFinder::AddFaults(const Scene &scene)
{
	const Thread *child =
	    cause_ == Cause::CowCopy || cause_ == Cause::CowReuse ? LiveChild(scene) : nullptr;
	NoteIn(scene, child ? " while the " + (child->role.empty() ? child->comm : child->role) + " ran" : "")
	    .subject = child ? ForkCommandOf(*child) : "";
}

void CulpritFinder::AddFiles(const Scene &scene)
{
	const CauseTotal &total = scene.Total(cause_);
	if (total.longest == kNoSpan)
		return;
	const ft_span &s = scene.run.spans[total.longest];
	std::string clause = SyscallText(scene, s.syscall);
	if (const std::string &name = DetailOf(scene.run, s).name; !name.empty())
		clause += std::string(" ") + InfoOf(cause_).words + " " + name;
	clause += " waited \1";
	const bool behind_fsync = !OtherFsyncText(scene, s.start_ns, SpanEnd(s)).empty();
	if (behind_fsync)
		clause += " behind fsync";
	else if (const std::string reason = WaitReason(DetailOf(scene.run, s).stack); !reason.empty())
		clause += " for " + reason;
	Actor &actor = Note(clause, total.all_ns(), total.times());
	actor.subject = DetailOf(scene.run, s).name;
	actor.behind_fsync = behind_fsync;
}

void CulpritFinder::AddFsyncs(const Scene &scene)
{
	const CauseTotal &total = scene.Total(cause_);
	const ft_span *longest = LongestFrame(scene, scene.landmarks.fsyncs);
	const std::string call = longest ? SyscallText(scene, SyncCall(*longest)) : "fsync()";
	const std::string file = FileOfSyncs(scene);
	Note(call + file + " by " + NameOfThread(scene.run, scene.thread) + " took \1", total.all_ns(),
	     total.times())
	    .subject = file;
}

void CulpritFinder::AddWaits(const Scene &scene)
{
	for (const HolderByName &holder : CpuHoldersOf(scene)) {
		Actor &actor = Note(holder.name, holder.ns, 1);
		actor.subject = holder.name;
		actor.tids.insert(holder.tids.begin(), holder.tids.end());
		actor.cpus.insert(holder.cpus.begin(), holder.cpus.end());
	}
	if (const auto idle = scene.holders.find(0); idle != scene.holders.end())
		idle_ns_ += idle->second.ns;
	short_ns_ += static_cast<uint64_t>(scene.Total(cause_).tallied_ns);
	min_span_ns_ = scene.run.min_span_ns;
}

void CulpritFinder::AddInterrupts(const Scene &scene)
{
	const CauseTotal &total = scene.Total(cause_);
	const std::string name = CauseName(cause_);
	const bool own = cause_ == Cause::SoftirqNetRx && IsOfOwnSends(scene, cause_);
	std::string clause = "Hardware interrupts took \1 of the time of \3";
	if (cause_ == Cause::SoftirqDeferred)
		clause = "ksoftirqd held \3 for \1 while " + NameOfThread(scene.run, scene.thread) +
			 " was ready to run";
	else if (size_t slash = name.find('/'); slash != std::string::npos)
		clause = "Soft interrupts (" + name.substr(slash + 1) + ")" +
			 (own ? " of the server's own sends" : "") + " took \1 of the time of \3";
	Actor &actor = NoteIn(scene, clause);
	actor.own_sends_ns += own ? total.all_ns() : 0;
	if (total.longest != kNoSpan)
		actor.cpus.insert(OwnCpu(scene.run, scene.run.spans[total.longest].cpu));
}

void CulpritFinder::AddBlocked(const Scene &scene)
{
	const CauseTotal &total = scene.Total(cause_);
	const ft_span *s = total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
	const std::string call = s ? SyscallText(scene, s->syscall) : std::string(CauseName(cause_));
	std::string clause;
	switch (cause_) {
	case Cause::Stopped:
		clause = StallPhrase(scene, cause_, "\1");
		break;
	case Cause::Reclaim:
		clause = "freed memory itself for \1 (direct reclaim)";
		break;
	case Cause::Compaction:
		clause = "compacted memory itself for \1";
		break;
	case Cause::MmapLock:
		clause = "waited \1 for its process' mmap lock";
		break;
	case Cause::Sleep:
		clause = "slept in " + call + " for \1";
		break;
	default:
		const std::string on = s ? SpecialFileText(scene, *s) : "",
				  reason = s && on.empty() ? WaitReason(DetailOf(scene.run, *s).stack) : "";
		clause = "was blocked in " + call + on + (on.empty() ? " for \1" : ", for \1") +
			 (reason.empty() ? "" : ", waiting for " + reason);
	}
	clause = NameOfThread(scene.run, scene.thread) + " " + clause;
	if (cause_ == Cause::Reclaim || cause_ == Cause::Compaction)
		NoteIn(scene, clause);
	else
		Note(clause, total.all_ns(), total.times());
}

void CulpritFinder::AddLock(const Scene &scene)
{
	const LockHold hold = LockHoldIn(scene);
	if (!hold.waiter)
		return AddBlocked(scene);
	Note(NameOfThread(scene.run, *hold.waiter) + " waited \1 for a lock that " +
		 NameOfThread(scene.run, scene.thread) + " held",
	     hold.ns, 1);
}

void CulpritFinder::AddSenders(const std::vector<Ran> &rans, Actor *actor)
{
	for (const Ran &ran : rans) {
		actor->senders.insert(ran.sender);
		if (actor->keys)
			std::erase_if(*actor->keys,
				      [&](const std::string &key) { return !ran.keys.contains(key); });
		else
			actor->keys = ran.keys;
	}
}

void CulpritFinder::AddBusy(const Scene &scene)
{
	IterationCalls calls;
	many_ |= !CountIterations(scene, &iterations_, &calls);
	accepted_ += calls.accepted;
	std::vector<BusyGroup> groups = BusyGroupsOf(scene.own_code, calls.accepted);
	if (std::string transaction = TransactionText(scene, scene.own_code, scene.from_ns, scene.to_ns);
	    !transaction.empty()) {
		uint64_t ns = 0;
		for (const BusyGroup &group : groups)
			ns += group.time_ns;
		transaction[0] = static_cast<char>(std::toupper(transaction[0]));
		Note(transaction, ns, 0);
		return;
	}
	const std::vector<Ran> rans = RansOf(scene);
	const Ran ran = rans.empty() ? Ran() : rans[0];
	if (groups.empty() && !ran.arguments.empty() && !ran.command.empty())
		AddSenders(rans, &Note(ran.Words(), BusyNs(scene, scene.from_ns, scene.to_ns), 0));
	const uint64_t receivers = MergeMessages(scene, ran, &groups);
	for (size_t i = 0; i < groups.size(); i++) {
		BusyGroup &group = groups[i];
		if (const std::string command =
			IsVague(group.names[0]) ? SlowCommand(scene, group.time_ns / 2) : "";
		    !command.empty() && MayBe(group.names[0], command))
			group.names[0] = "command/" + command;
		const bool its = i == 0 && MayBeIts(group.names[0], ran);
		std::string clause = BusyActor(group.names) + ModuleCommand(scene, group);
		const bool messages = receivers && group.names[0].ends_with("PUBLISH");
		if (!messages && its &&
		    (!ran.arguments.empty() || !group.names[0].starts_with("command/") ||
		     IsVague(group.names[0])))
			clause = ran.arguments.empty() ? BusyActor({"command/" + ran.command}) : ran.Words();
		Actor &actor = Note(clause, group.time_ns, 0);
		actor.receivers = std::max(actor.receivers, messages ? receivers : 0);
		actor.subject = its && !ran.command.empty() ? "command/" + ran.command : group.names[0];
		AddSenders(its ? rans : std::vector<Ran>(1), &actor);
	}
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
	AddTimes(client.timeline, scene.from_ns, scene.to_ns, &times);
	auto ns = [&](Cause cause) { return times[static_cast<size_t>(Index(cause))]; };
	Cause most = Cause::ServerBusy;
	for (int i = 0; i < kTimelineCauses; i++)
		if (StallsClient(static_cast<Cause>(i)) && ns(static_cast<Cause>(i)) > ns(most))
			most = static_cast<Cause>(i);
	if (most == Cause::ServerBusy) {
		Note("The load generator's own code ran for \1", ns(most), 1);
	} else if (most == Cause::RunQueue) {
		const std::vector<HolderByName> holders = CpuHoldersOf(client);
		const std::string held =
		    holders.empty() || holders[0].ns * 2 < ns(most)
			? ""
			: " that " + CpuHolderName(holders[0].name, holders[0].tids) + " held";
		Note("The load generator waited \1 for a CPU" + held, ns(most), 1).subject =
		    CauseName(Cause::RunQueue);
	} else {
		Note("The load generator " + StallPhrase(client, most, "\1"), ns(most), 1);
	}
}

void CulpritFinder::AddOutage(const Scene &scene)
{
	uint64_t ns = 0;
	const std::string clause = OutageClause(scene.run, scene.from_ns, scene.to_ns, &ns);
	if (ns && !actors_.contains(clause)) // an outage may be in several episodes
		Note(clause, ns, 1);
}

// A recorded process that could not answer while the server waited. It may be innocent: nothing shows that
// the server waited for it.
void CulpritFinder::AddStalledTarget(const Scene &scene)
{
	const CauseTotal &idle = scene.Total(Cause::Idle);
	if (idle.longest == kNoSpan)
		return;
	const ft_span &s = scene.run.spans[idle.longest];
	if (const auto target = StalledTargetIn(scene, std::max(s.start_ns, scene.from_ns),
						std::min(SpanEnd(s), scene.to_ns)))
		Note(target->text, target->ns, 1);
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
	threads_[NameOfThread(scene.run, scene.thread)] += ns;
	AddOf(scene, cause, ns);
}

void CulpritFinder::AddOf(const Scene &scene, const EpisodeCause &cause, uint64_t ns)
{
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
	case SentenceKind::Lock:
		return AddLock(scene);
	case SentenceKind::Busy:
		return AddBusy(scene);
	case SentenceKind::Client:
		return AddClient(scene, cause.time_ns);
	case SentenceKind::Frozen:
		Note("The server's " + FrozenGroupText(scene) + " was frozen for \1", ns, 1);
		return;
	case SentenceKind::Ptrace:
		Note(TracerText(scene) + " stopped " + NameOfThread(scene.run, scene.thread) + " for \1", ns,
		     1);
		return;
	case SentenceKind::Quota:
		Note(QuotaClause(scene), ns, scene.Total(cause_).times());
		return;
	case SentenceKind::IoThread:
		Note(NameOfThread(scene.run, scene.thread) + " worked for \1 while the main thread waited",
		     cause.thread_ns, 1);
		return;
	case SentenceKind::None:
		return AddOutage(scene); // of the causes of a request, no-server alone
	case SentenceKind::Peer:
		Note(PeerClause(scene), ns, scene.Total(cause_).times()).meanwhile = PeerMeanwhile(scene);
		return;
	case SentenceKind::Held:
	case SentenceKind::Network:
	case SentenceKind::Unknown:
		return AddStalledTarget(scene);
	}
}

// Actors with the most time first.
std::vector<const CulpritFinder::Named *> CulpritFinder::Ranked() const
{
	std::vector<const Named *> ranked;
	for (const Named &actor : actors_)
		ranked.push_back(&actor);
	std::stable_sort(ranked.begin(), ranked.end(),
			 [](const Named *a, const Named *b) { return a->second.ns > b->second.ns; });
	return ranked;
}

// The thread with the most time; "redis-server (12) and other threads" if these have a fair part.
std::string CulpritFinder::ThreadsText() const
{
	const auto most = std::max_element(threads_.begin(), threads_.end(),
					   [](const auto &a, const auto &b) { return a.second < b.second; });
	return most->first + (Several() ? " and other threads" : "");
}

bool CulpritFinder::Several() const
{
	return std::none_of(threads_.begin(), threads_.end(),
			    [&](const auto &t) { return IsMost(t.second); });
}

bool CulpritFinder::IsMost(uint64_t ns) const
{
	return static_cast<double>(ns) >= kMainPart * static_cast<double>(all_ns_);
}

CulpritFinder::Actor CulpritFinder::Sum() const
{
	Actor sum;
	for (const auto &[clause, actor] : actors_) {
		sum.ns += actor.ns;
		for (const auto &[command, ns] : actor.during)
			sum.during[command] += ns;
		sum.times += actor.times;
		sum.longest_ns = std::max(sum.longest_ns, actor.longest_ns);
	}
	return sum;
}

std::string CulpritFinder::ForksText() const
{
	const Actor all = Sum();
	std::string purposes;
	for (const Named *actor : Ranked())
		if (static_cast<double>(actor->second.ns) >= kMinActorPart * static_cast<double>(all.ns))
			purposes += (purposes.empty() ? "" : " and ") + actor->first;
	return CallsText(all.times, purposes == "a thread" ? "clone()" : "fork()") + " for " + purposes +
	       " took " + common::FormatDuration(all.ns) +
	       (all.times > 1 ? ", the longest " + common::FormatDuration(all.longest_ns) : "");
}

std::string CulpritFinder::FaultsText() const
{
	const Actor all = Sum();
	const std::string words = InfoOf(cause_).words;
	const size_t bar = words.find('|');
	return common::Plural(all.times, words.substr(0, bar).c_str(), words.c_str() + bar + 1) +
	       Ranked()[0]->first + " took " + common::FormatDuration(all.ns) + DuringText(all);
}

// The parts of waits for a CPU that no recorded thread explains, and what shows who had the CPU then.
std::string CulpritFinder::UnheldText(uint64_t held_ns) const
{
	auto matters = [&](uint64_t ns) { return ns >= all_ns_ / 10; };
	std::string text;
	if (matters(idle_ns_))
		text += "; for " + common::FormatDuration(idle_ns_) +
			" it was idle, until the kernel let the thread run on it";
	if (min_span_ns_ && matters(short_ns_))
		text += "; " + common::FormatDuration(short_ns_) + " are waits of less than " +
			common::FormatDuration(min_span_ns_) +
			", whose CPU holders are recorded with --min-span 1us";
	const uint64_t known_ns = held_ns + idle_ns_ + short_ns_;
	if (const uint64_t rest_ns = all_ns_ - std::min(all_ns_, known_ns); rest_ns && matters(rest_ns))
		text += "; for " + common::FormatDuration(rest_ns) +
			" the CPU holder was not recorded (perf sched record shows it)";
	return text;
}

std::string CulpritFinder::WaitsText() const
{
	const std::vector<const Named *> holders = Ranked();
	const std::string waited = ThreadsText() + " waited " + common::FormatDuration(all_ns_);
	const uint64_t held_ns = Sum().ns;
	auto name = [&](size_t i) { return CpuHolderName(holders[i]->first, holders[i]->second.tids); };
	if (held_ns * 2 < all_ns_) {
		std::string held;
		for (size_t i = 0; i < holders.size() && i < kHoldersShown; i++)
			held += (i ? ", " : " that ") + name(i) + (i ? "" : " held") + " for " +
				common::FormatDuration(holders[i]->second.ns);
		return waited + " for a CPU" + held + UnheldText(held_ns);
	}
	const Actor &first = holders[0]->second;
	if (IsMost(first.ns))
		return name(0) + " held " + CpusText(first.cpus) + " for " +
		       common::FormatDuration(first.ns) + " while " + ThreadsText() +
		       (Several() ? " were" : " was") + " ready to run";
	return waited + " for a CPU that " + name(0) +
	       (holders.size() == 2  ? " and " + name(1)
		: holders.size() > 2 ? ", " + name(1) + " and others"
				     : "") +
	       " held";
}

std::string CulpritFinder::BusyText() const
{
	const std::vector<const Named *> parts = Ranked();
	std::string in;
	if (iterations_ && !many_)
		in = " in " + common::Plural(iterations_, "event-loop iteration", "event-loop iterations");
	const std::string ran = ThreadsText() + " ran " + (Several() ? "their" : "its") + " own code",
			  all = common::FormatDuration(all_ns_);
	if (parts.empty())
		return ran + " for " + all + in + ", without CPU samples";
	auto share = [&](size_t i) {
		return static_cast<double>(parts[i]->second.ns) /
		       static_cast<double>(std::max<uint64_t>(all_ns_, 1));
	};
	auto name = [&](size_t i) {
		const auto &[clause, actor] = *parts[i];
		return clause + (actor.receivers ? " to " + AboutCalls(actor.receivers) + " clients" : "");
	};
	const uint64_t ns = parts[0]->second.ns;
	std::string subject = name(0);
	if (subject == kTlsHandshakes && accepted_)
		subject += " of about " + common::FormatCount(accepted_) + " connections";
	subject += KeysText(parts[0]->second) + SendersText(parts[0]->second);
	if (share(0) >= kNearlyAll)
		return subject + " took " + common::FormatDuration(ns) + " of CPU" + in;
	if (share(0) >= kHalf)
		return subject + " took " + common::FormatDuration(ns) + " of the " + all + " that " + ran;
	std::string text = ran + " for " + all + " (";
	for (size_t i = 0; i < parts.size() && i < 2; i++)
		text += (i ? ", " + name(i) : subject) + " " + common::FormatShare(share(i));
	return text + ")";
}

// The clause of the actor with the most time.
std::string CulpritFinder::ActorText(const Named &named) const
{
	const Actor &actor = named.second;
	std::string text = named.first;
	Replace("\1", common::FormatDuration(actor.ns), &text);
	Replace("\2", TimesText(actor.times), &text);
	Replace("\3", CpusText(actor.cpus), &text);
	return text + (IsMost(actor.ns) ? "" : ", part of " + common::FormatDuration(all_ns_)) +
	       DuringText(actor);
}

// ", during LCS", if most of it was in one command; else "".
std::string CulpritFinder::DuringText(const Actor &actor)
{
	for (const auto &[command, ns] : actor.during)
		if (!command.empty() && static_cast<double>(ns) >= kMainPart * static_cast<double>(actor.ns))
			return ", during " + command;
	return "";
}

// " from 127.0.0.1:5123", if all that is known to have sent the command are few; else "".
std::string CulpritFinder::SendersText(const Actor &actor)
{
	constexpr size_t named = 2;
	if (actor.senders.empty() || actor.senders.contains("") || actor.senders.size() > named)
		return "";
	std::string text;
	for (const std::string &sender : actor.senders)
		text += (text.empty() ? " from " : " and ") + sender;
	return text;
}

// " of the key "cart"", if all that is known of the command's keys is the same; else "".
std::string CulpritFinder::KeysText(const Actor &actor)
{
	return actor.keys && actor.keys->size() == 1 ? " of " + *actor.keys->begin() : "";
}

bool CulpritFinder::OfOwnSends() const
{
	return std::ranges::any_of(actors_, [&](const Named &named) {
		return named.second.own_sends_ns && IsMost(named.second.own_sends_ns);
	});
}

Culprit CulpritFinder::Result() const
{
	const SentenceKind kind = InfoOf(cause_).telling;
	const Actor sum = Sum(), none, &first = actors_.empty() ? none : Ranked()[0]->second;
	Culprit culprit = {"", first.meanwhile};
	// Their thread's time is known even where no actor is.
	if (kind == SentenceKind::RunQueue && all_ns_)
		culprit.clause = WaitsText();
	else if (kind == SentenceKind::Busy && all_ns_)
		culprit.clause = BusyText();
	else if (sum.ns == 0)
		return {};
	else if (kind == SentenceKind::Fork)
		culprit.clause = ForksText();
	else if (kind == SentenceKind::Faults)
		culprit.clause = FaultsText();
	else
		culprit.clause = ActorText(*Ranked()[0]);
	// Forks have their own sum: all_ns_ has only their part in slow requests' scenes.
	const uint64_t all_ns = kind == SentenceKind::Fork ? sum.ns : all_ns_;
	if (static_cast<double>(first.ns) >= kMainPart * static_cast<double>(all_ns)) {
		culprit.subject = first.subject;
		culprit.behind_fsync = first.behind_fsync;
	}
	return culprit;
}

} // namespace forktail::analysis
