// SPDX-License-Identifier: MIT
// The sentences of evidence.
//
// One function per family of causes. Its sentence names the event, its duration and the activity that
// explains it.
#include "scene.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/format.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kMinPartDivisor = 33; // parts below 1/33, 3 %, are not printed

const ft_span *Longest(const Scene &scene, const CauseTotal &total)
{
	return total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
}

std::string CountText(uint64_t n)
{
	return n > 1 ? " (" + common::FormatCount(n) + " times)" : "";
}

std::string ProcessText(const Run &run, const Thread &t)
{
	std::string name = t.role.empty() ? t.comm : t.role;
	return (name.empty() ? "thread" : name) + " " + std::to_string(OwnId(run, t.tid));
}

// A child of the scene's process that existed in the interval, as "while snapshot child 4312 ran".
std::string ChildrenText(const Scene &scene)
{
	const Thread *child = LiveChild(scene);
	return child ? " while " + ProcessText(scene.run, *child) + " ran" : "";
}

// Redis' report about a fork: the first one after its end and before the next fork.
std::string RedisForkText(const Scene &scene, const ft_span &fork)
{
	uint64_t until = UINT64_MAX;
	for (uint32_t i : scene.landmarks.forks) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid == fork.tid && s.start_ns > fork.start_ns && !MadeThread(scene, s)) {
			until = s.start_ns;
			break;
		}
	}
	for (const ServerReport &r : scene.run.reports)
		if (r.latest_fork_usec && r.t_ns >= SpanEnd(fork) && r.t_ns < until)
			return "; Redis reports latest_fork_usec " + common::FormatCount(r.latest_fork_usec);
	return "";
}

// The process' resident memory at an instant, in bytes: the recorder's last sample before it, else the value
// of run.json, else 0.
uint64_t ResidentBytes(const Scene &scene, uint64_t t_ns)
{
	for (const Series &series : scene.run.series) {
		if (series.name != "target.rss" || !IsOfProcess(scene.run, series, scene.thread))
			continue;
		auto after =
		    std::upper_bound(series.samples.begin(), series.samples.end(), t_ns,
				     [](uint64_t ns, const Sample &sample) { return ns < sample.t_ns; });
		if (after != series.samples.begin())
			return static_cast<uint64_t>((after - 1)->value);
	}
	return scene.run.info.rss_bytes;
}

std::string ForkSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Fork);
	const ft_span *s = LongestFrame(scene, scene.landmarks.forks);
	if (!s)
		return "short fork() and clone() calls took " +
		       common::FormatDuration(static_cast<uint64_t>(total.tallied_ns));
	if (MadeThread(scene, *s))
		return "clone() of a thread took " + common::FormatDuration(s->duration_ns) +
		       CountText(total.spans);
	std::string text = "fork() copied page tables for " + common::FormatDuration(s->duration_ns);
	if (uint64_t bytes = ResidentBytes(scene, s->start_ns))
		text += " (RSS " + common::FormatBytes(bytes) + ")";
	if (const Thread *child = ChildOf(scene, *s)) {
		const std::string pid = std::to_string(OwnId(scene.run, child->tid));
		const std::string command = ForkCommandOf(*child);
		text += command.empty() ? " for " + ProcessText(scene.run, *child)
					: " as " + command + " started " + child->role + " " + pid;
		if (const std::string sync = SyncText(scene, *s, *child); !sync.empty())
			text += " (" + sync + ")";
	}
	return text + RedisForkText(scene, *s);
}

// ", during LCS": the command in which most of a cause's time was; "" if it is not known.
std::string DuringText(const Scene &scene, Cause cause)
{
	const std::string command = MainCommandIn(scene, cause);
	return command.empty() ? "" : ", during " + command;
}

std::string FaultSentence(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.Total(cause);
	const uint64_t count = total.times(), ns = total.all_ns();
	if (count == 0)
		return "";
	std::string words = InfoOf(cause).words, one = words.substr(0, words.find('|')),
		    many = words.substr(words.find('|') + 1);
	std::string text =
	    common::Plural(count, one.c_str(), many.c_str()) + ", " + common::FormatDuration(ns);
	if (const ft_span *s = Longest(scene, total); s && count > 1)
		text += ", longest " + common::FormatDuration(s->duration_ns);
	if (cause == Cause::CowCopy || cause == Cause::CowReuse)
		text += ChildrenText(scene);
	text += DuringText(scene, cause);
	if (cause == Cause::PageIn)
		text += DiskText(scene, scene.from_ns, scene.to_ns);
	return text;
}

std::string FileSentence(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.Total(cause);
	const ft_span *s = Longest(scene, total);
	if (!s)
		return "short file calls blocked for " +
		       common::FormatDuration(static_cast<uint64_t>(total.tallied_ns));
	std::string text = SyscallText(scene, s->syscall);
	if (const std::string &name = DetailOf(scene.run, *s).name; !name.empty())
		text += std::string(" ") + InfoOf(cause).words + " " + name;
	text += " was blocked for " + common::FormatDuration(total.ns) + CountText(total.spans);
	text += OtherFsyncText(scene, s->start_ns, SpanEnd(*s));
	return text + FileWaitText(scene, *s);
}

std::string FsyncSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Fsync);
	const ft_span *s = LongestFrame(scene, scene.landmarks.fsyncs);
	if (!s)
		return "short fsync calls took " +
		       common::FormatDuration(static_cast<uint64_t>(total.tallied_ns));
	std::string call = SyscallText(scene, SyncCall(*s));
	return call + FileOfSyncs(scene) + " on the serving thread took " + common::FormatDuration(total.ns) +
	       FileWaitText(scene, *s);
}

std::string RunQueueSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::RunQueue);
	const ft_span *s = Longest(scene, total);
	if (!s)
		return "short waits for a CPU took " +
		       common::FormatDuration(static_cast<uint64_t>(total.tallied_ns)) +
		       CountText(static_cast<uint64_t>(std::llround(total.tallied)));
	std::string text = "waited " + common::FormatDuration(total.ns) + " on the run queue of cpu " +
			   std::to_string(OwnCpu(scene.run, s->cpu)) + CountText(total.spans);
	const std::string holders = CpuHoldersText(scene, total.ns);
	return text + (holders.empty() ? "; which thread held the CPU was not recorded"
				       : "; the CPU was " + holders);
}

std::string InterruptSentence(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.Total(cause);
	const uint64_t count = total.times(), ns = total.all_ns();
	if (ns == 0)
		return "";
	if (cause == Cause::SoftirqDeferred)
		return "waited " + common::FormatDuration(ns) + CountText(count) +
		       " for a CPU that ksoftirqd held: the kernel had deferred soft interrupts to it";
	std::string name = CauseName(cause);
	if (size_t slash = name.find('/'); slash != std::string::npos)
		name[slash] = ' ';
	std::string text = name + " took " + common::FormatDuration(ns);
	if (const ft_span *s = Longest(scene, total))
		text += " on cpu " + std::to_string(OwnCpu(scene.run, s->cpu));
	return text + CountText(count) + DuringText(scene, cause) +
	       (IsOfOwnSends(scene, cause) ? ", in the server's own sends" : "");
}

std::string BlockedSentence(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.Total(cause);
	const ft_span *s = Longest(scene, total);
	const uint64_t ns = total.all_ns();
	if (ns == 0)
		return "";
	std::string length = common::FormatDuration(ns) + CountText(total.spans), words = InfoOf(cause).words;
	std::string call = s ? SyscallText(scene, s->syscall) : std::string(CauseName(cause));
	if (size_t at = words.find('&'); at != std::string::npos)
		words.replace(at, 1, s && s->depth ? CauseName(CauseOfOwner(s->owner)) : call);
	if (size_t at = words.find('%'); at != std::string::npos)
		return words.replace(at, 1, length) + (cause == Cause::Reclaim || cause == Cause::Compaction
							   ? DuringText(scene, cause)
							   : "");
	const std::string on = s ? SpecialFileText(scene, *s) : "";
	return "blocked in " + call + on + (on.empty() ? " for " : ", for ") + length +
	       (s ? StackReasonText(DetailOf(scene.run, *s)) : "");
}

// The scene of the I/O thread.
std::string IoThreadSentence(const Scene &scene, const EpisodeCause &cause)
{
	std::vector<std::string> names;
	for (const ActivityTime &a : scene.own_code.activities)
		names.push_back(a.name);
	std::string words = ActivityWords(names, {});
	return "worked while the main thread waited for it, " + common::FormatDuration(cause.time_ns) +
	       " of the requests' time" + (words.empty() ? "" : "; this thread " + words);
}

// What the load thread did during the server's idle spans. ClientSentence reports its stalls.
std::string ClientActivityText(const Scene &scene)
{
	const Timeline &server = scene.timeline, &client = scene.client->timeline;
	uint64_t from = std::max(scene.from_ns, server.start_ns()),
		 to = std::min(scene.to_ns, server.end_ns());
	CauseTimes times = {};
	for (uint32_t i = from < to ? PieceAt(server, from) : 0; from < to && server.pieces[i].start_ns < to;
	     i++)
		if (const Piece &p = server.pieces[i]; p.cause == Cause::Idle && p.span != kNoSpan)
			AddTimes(client, std::max(from, p.start_ns),
				 std::min(to, server.pieces[i + 1].start_ns), &times);
	const Thread &thread = scene.client->thread;
	uint64_t waited_ns = times[Index(Cause::Idle)], ran_ns = times[Index(Cause::ServerBusy)];
	if (waited_ns + ran_ns == 0)
		return "";
	std::string name = "the load generator's thread " + thread.comm + " (" +
			   std::to_string(OwnId(scene.run, thread.tid)) + ")";
	if (ran_ns > waited_ns)
		return ", or had arrived while " + name + " ran its own code for " +
		       common::FormatDuration(ran_ns) + " of that time";
	return ", while " + name + " waited " + common::FormatDuration(waited_ns) + " for them and ran for " +
	       common::FormatDuration(ran_ns);
}

// With known arrival times, time after a reply's arrival is not network time.
std::string OnNetworkText(const Scene &scene)
{
	if (!scene.answers || !scene.answers->known)
		return std::string(
			   "requests or replies were on the network, or the server held the requests") +
		       (scene.client ? ClientActivityText(scene)
				     : ", or the load generator (not recorded) did not run");
	const OnTheWay &way = scene.answers->way;
	if (way.request_ns == 0 && way.answer_ns == 0)
		return "requests or replies were on the network, or the server held the requests";
	return "requests were on the network for " + common::FormatDuration(way.request_ns) +
	       " in total, replies for " + common::FormatDuration(way.answer_ns);
}

std::string NetworkSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::Idle);
	const std::string tcp = scene.tcp ? TcpText(*scene.tcp, scene.run) : "";
	if (!tcp.empty() && scene.tcp->explained_ns() * 2 >= scene.tcp->network_ns)
		return tcp;
	if (total.all_ns() == 0) // another hop was
		return OnNetworkText(scene) + (tcp.empty() ? "" : "; " + tcp);
	std::string text = "the server was idle for " + common::FormatDuration(total.all_ns());
	if (total.longest_ns)
		text += " (longest " + common::FormatDuration(total.longest_ns) + ")";
	return text + ": " + OnNetworkText(scene) + (tcp.empty() ? "" : "; " + tcp) +
	       StalledTargetText(scene, Cause::Idle);
}

std::string HeldSentence(const Scene &scene)
{
	return "the server was idle for " + common::FormatDuration(scene.Total(Cause::Idle).all_ns()) +
	       ", and held requests that it had read" + StalledTargetText(scene, Cause::Idle);
}

// What stopped a load thread from running: at most two causes, longest first, the second only if it is at
// least a fifth of the first.
std::string ClientStalls(const Scene &client)
{
	std::vector<std::pair<uint64_t, Cause>> stalls;
	for (int i = 0; i < kTimelineCauses; i++) {
		if (!StallsClient(static_cast<Cause>(i)))
			continue;
		if (uint64_t ns = client.Total(static_cast<Cause>(i)).all_ns())
			stalls.push_back({ns, static_cast<Cause>(i)});
	}
	std::sort(stalls.rbegin(), stalls.rend());
	std::string text;
	for (size_t i = 0; i < stalls.size() && i < 2; i++) {
		auto [ns, cause] = stalls[i];
		if (ns < stalls[0].first / 5)
			break;
		text += i ? " and " : "";
		if (cause == Cause::RunQueue) {
			const std::string holders = CpuHoldersText(client, ns);
			text += "waited " + common::FormatDuration(ns) + " for a CPU" +
				(holders.empty() ? "" : ", " + holders);
		} else {
			text += StallPhrase(client, cause, common::FormatDuration(ns));
		}
	}
	return text;
}

// "replies were unread at the client for 31.0 ms in total (longest 30.0 ms)"; "" if no wait is known.
std::string UnreadText(const Scene &scene)
{
	if (!scene.answers || scene.answers->unread_ns == 0)
		return "";
	return "replies were unread at the client for " + common::FormatDuration(scene.answers->unread_ns) +
	       " in total (longest " + common::FormatDuration(scene.answers->longest_unread_ns) + ")";
}

std::string ClientSentence(const Scene &scene, uint64_t late_ns)
{
	std::string unread = UnreadText(scene);
	if (!scene.client) {
		uint64_t unread_ns = unread.empty() ? 0 : std::min(scene.answers->unread_ns, late_ns);
		std::string sent = "the load generator sent requests late, by " +
				   common::FormatDuration(late_ns - unread_ns) +
				   " in total, although their connections were free";
		if (late_ns - unread_ns < late_ns / kMinPartDivisor)
			return unread;
		return unread.empty() ? sent : unread + "; " + sent;
	}
	const Scene &client = *scene.client;
	CauseTimes times = {};
	AddTimes(client.timeline, client.from_ns, client.to_ns, &times);
	uint64_t busy_ns = times[Index(Cause::ServerBusy)], stalled_ns = 0;
	for (int i = 0; i < kTimelineCauses; i++)
		if (StallsClient(static_cast<Cause>(i)))
			stalled_ns += times[i];
	const std::string thread = "thread " + client.thread.comm + " (" +
				   std::to_string(OwnId(client.run, client.thread.tid)) + ")";
	if (!unread.empty())
		unread = "; " + unread;
	if (!busy_ns && !stalled_ns)
		return "the load generator sent requests late, by " + common::FormatDuration(late_ns) +
		       " in total; the recording does not show why its " + thread + " did" + unread;
	std::string what = stalled_ns * 2 > busy_ns
			       ? ClientStalls(client)
			       : "ran its own code for " + common::FormatDuration(busy_ns) + " of these " +
				     common::FormatDuration(client.to_ns - client.from_ns);
	return "the load generator's " + thread + " " + what + "; this delayed requests by " +
	       common::FormatDuration(late_ns) + " in total" + unread;
}

} // namespace

std::string ShareSentence(const EpisodeCause &cause)
{
	if (InfoOf(cause.cause).telling == SentenceKind::None)
		return "";
	return std::string(CauseName(cause.cause)) + " took " + common::FormatDuration(cause.time_ns) +
	       " of the requests' time, of which no event was recorded";
}

std::string Sentence(const Scene &scene, const EpisodeCause &cause)
{
	switch (InfoOf(cause.cause).telling) {
	case SentenceKind::None: // idleness is no cause; outages are in scene.h
		break;
	case SentenceKind::Blocked:
		return BlockedSentence(scene, cause.cause);
	case SentenceKind::Lock: {
		std::string text = LockSentence(scene);
		return text.empty() ? BlockedSentence(scene, cause.cause) : text;
	}
	case SentenceKind::Busy:
		return BusySentence(scene);
	case SentenceKind::Client:
		return ClientSentence(scene, cause.time_ns);
	case SentenceKind::Faults:
		return FaultSentence(scene, cause.cause);
	case SentenceKind::File:
		return FileSentence(scene, cause.cause);
	case SentenceKind::Fork:
		return ForkSentence(scene);
	case SentenceKind::Frozen:
		return FrozenSentence(scene);
	case SentenceKind::Fsync:
		return FsyncSentence(scene);
	case SentenceKind::Interrupt:
		return InterruptSentence(scene, cause.cause);
	case SentenceKind::IoThread:
		return IoThreadSentence(scene, cause);
	case SentenceKind::Held:
		return HeldSentence(scene);
	case SentenceKind::Network:
		return NetworkSentence(scene);
	case SentenceKind::Peer:
		return PeerSentence(scene);
	case SentenceKind::Ptrace:
		return PtraceSentence(scene);
	case SentenceKind::Quota:
		return QuotaSentence(scene);
	case SentenceKind::RunQueue:
		return RunQueueSentence(scene);
	case SentenceKind::Unknown:
		return common::FormatDuration(cause.time_ns) +
		       " of the requests' time has no recorded cause" + StalledTargetText(scene, Cause::Idle);
	}
	return "";
}

} // namespace forktail::analysis
