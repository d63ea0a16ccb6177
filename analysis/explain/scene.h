// SPDX-License-Identifier: MIT
// A scene: a server thread and its surroundings in one interval. Sentences of evidence are made from it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/evidence.h"
#include "analysis/run.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

// One cause's share of the interval.
struct CauseTotal {
	uint64_t ns = 0;	 // of spans, clipped to the interval
	uint64_t spans = 0;	 // how many
	uint32_t last = kNoSpan; // the last span counted
	uint32_t longest = kNoSpan;
	uint64_t longest_ns = 0; // of the longest span, in the interval
	double tallied = 0;	 // number of short spans; a window partly inside counts in proportion
	double tallied_ns = 0;

	uint64_t all_ns() const { return ns + static_cast<uint64_t>(tallied_ns); }
	uint64_t times() const { return spans + static_cast<uint64_t>(std::llround(tallied)); }
};

// A CPU holder: a thread that ran while the server's thread waited for the CPU.
struct Holder {
	uint64_t ns = 0;
	std::string name = {};
	uint16_t cpu = 0; // of one of these waits
};

// Rare spans of the whole run that sentences use, by thread and start.
struct Landmarks {
	std::vector<uint32_t> forks, fsyncs;
};

struct Commands;

// Whether this command runs a script: EVAL, FCALL and their forms.
bool IsScript(const std::string &command);

struct Scene {
	const Run &run;
	const Timeline &timeline;
	const Thread &thread; // of the timeline
	const Landmarks &landmarks;
	uint64_t from_ns = 0;
	uint64_t to_ns = 0;
	std::array<CauseTotal, kTimelineCauses> totals = {};
	std::map<uint32_t, Holder> holders = {};	  // by tid; 0: the CPU was idle
	OwnCode own_code = {};				  // on-CPU time of the thread
	const Scene *client = nullptr;			  // the load thread of the worst request, if recorded
	const Activities *activities = nullptr;		  // of the run's samples
	const EpisodeAnswers *answers = nullptr;	  // of the episode
	const TcpFacts *tcp = nullptr;			  // likewise
	const std::vector<Timeline> *timelines = nullptr; // of all hops
	ThreadTimelines *threads = nullptr;		  // of any thread
	const Commands *commands = nullptr;		  // null: none are known
	std::span<const SlowRequest> requests = {};	  // of the episode

	const CauseTotal &Total(Cause cause) const { return totals[static_cast<size_t>(Index(cause))]; }
};

// Fills totals and holders.
void Gather(Scene *scene);
// On-CPU time of the scene's thread in an interval, by activity.
OwnCode OwnCodeIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns);

inline uint64_t SpanEnd(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// Calls see(iteration) for each event-loop iteration that overlaps the scene, in order.
template <typename See> void EachIteration(const Scene &scene, See see)
{
	// A thread's iterations do not overlap, so their ends are sorted like their starts.
	const ft_span *first = scene.run.iterations.data() + scene.thread.first_iteration;
	const ft_span *end = first + scene.thread.iteration_count;
	for (const ft_span *s = std::partition_point(
		 first, end, [&](const ft_span &x) { return SpanEnd(x) <= scene.from_ns; });
	     s < end && s->start_ns < scene.to_ns; s++)
		see(*s);
}

// Which command ran in an event-loop iteration, and who sent it (commands.cc).

// An entry of the server's slow log.
struct SlowEntry {
	uint64_t t_ns = 0, duration_ns = 0; // it ended at t_ns,
	uint64_t error_ns = 0;		    // within this error: the server notes seconds
	std::string command, client;	    // its first word in upper case; "127.0.0.1:5123"; "": unknown
	uint64_t arguments = 0;		    // without the command's name
};
SlowEntry SlowEntryOf(const ServerReport &report);

// Finds the event-loop iterations in which the commands of the slow log ran: those whose length fits. It
// needs all iterations before it dates any entry, because each command gets the one that fits best.
class SlowLog
{
public:
	explicit SlowLog(const Run &run);
	// Looks at the loaded iterations that began in [from_ns, to_ns). `activities`: of the loaded samples.
	void Add(const Run &run, const Activities &activities, uint64_t from_ns, uint64_t to_ns);
	// Per Run::reports, those iterations. One: it ran in that one, or a part of it. None: it is not
	// known.
	std::vector<std::vector<TimeSpan>> Date() const;
	// Per Run::reports; blank for other reports.
	std::vector<SlowEntry> Entries() const;

private:
	struct May {
		uint64_t start_ns, end_ns;
		const Thread *thread; // null once `activity` is known
		std::string activity; // "": not known
		uint64_t length_ns() const { return end_ns - start_ns; }
	};
	struct Entry {
		size_t report;
		SlowEntry of;
		std::vector<May> may;
	};
	static void Trim(const Run &run, const Activities &activities, Entry *e);

	std::vector<Entry> entries_;
	size_t reports_;
	bool looked_ = false;
};

// What reports say of commands.
struct Commands {
	std::vector<std::vector<TimeSpan>> ran_in; // SlowLog::Date(); empty: no iterations are known
	std::vector<SlowEntry> entries;		   // SlowLog::Entries()
	std::vector<OthersRequest> others;	   // by `read_ns`
	// The longest dated entry of the slow log by the begin of its iteration.
	std::map<uint64_t, SlowEntry> dated;
	// "40,000 keys" of requests with very many, by when which thread read them.
	std::map<std::pair<uint64_t, uint64_t>, std::string> arguments;
};
Commands CommandsOf(const Run &run, const SlowLog &slow_log);

// FindEvidence for a run of which a stretch is in memory. Returns the causes of soft interrupts that were
// those of the server's own sends.
std::set<Cause> FindEvidenceWith(const Commands &commands, const Run &run,
				 const std::vector<Timeline> &timelines, const Blame &blame,
				 const Activities &activities, size_t limit, size_t episodes_limit,
				 std::vector<Episode> *episodes, const Clients &clients, const Cover &cover,
				 Culprits *culprits);

// Whether the activity of a function does not tell which command it ran.
bool IsVague(const std::string &activity);
// Whether it may be this command: of several commands only those that it lists.
bool MayBe(const std::string &activity, const std::string &command);
// Whether the iteration is known that an entry of the slow log was.
bool IsDated(const Commands &commands, size_t report, uint64_t duration_ns);
// Whether the entry may have run in [from_ns, to_ns].
bool MayBeOf(const Commands &commands, size_t report, const SlowEntry &entry, uint64_t from_ns,
	     uint64_t to_ns);

// The command that took most of an iteration. What is not known is empty.
struct Ran {
	std::string command;   // "KEYS", as its client sent it, else by its function
	std::string sender;    // "127.0.0.1:5123"
	std::string arguments; // "40,000 keys", of a request with very many
	uint64_t ns = 0;       // by the slow log
	// Its key, "the key \"cart\"" or "a key that begins with \"user:\"", or those that it may have had;
	// empty: unknown.
	std::set<std::string> keys = {};
	std::string activity = {}; // of most samples, and of the kernel's work in it

	std::string Words() const; // "One GET of 40,000 keys", "KEYS", ""
};
Ran RanIn(const Scene &scene, const ft_span &iteration);
// The command in which most of the scene's time of this cause was: "LCS", "SINTER or SMEMBERS", "one
// GET of 40,000 keys from 127.0.0.1:5123"; "" if it is not known.
std::string MainCommandIn(const Scene &scene, Cause cause);

// "redis-server (9163)"; "memcached's mc-worker (6615)" if the process has another name than the thread.
std::string NameOfThread(const Run &run, const Thread &thread);
// "write()", a system call by number; "the kernel" for waits outside system calls (number < 0).
std::string SyscallText(const Scene &scene, int number);
// The number of the system call that a span of FT_FSYNC was in.
int SyncCall(const ft_span &s);
// The longest fsync of another thread of the process, or of its child, in [from, to): "; bio_aof_fsync (12)
// was in fdatasync() for 30.0 ms"; "" without one.
std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
// Whether the call of a fork's span created a thread, not a process.
bool MadeThread(const Scene &scene, const ft_span &fork);
// The child process of a fork; nullptr if it is not in the recording.
const Thread *ChildOf(const Scene &scene, const ft_span &fork);
// The longest of these frames that is on the scene's thread and overlaps the scene.
const ft_span *LongestFrame(const Scene &scene, const std::vector<uint32_t> &frames);
// What makes a server fork such a child: "BGSAVE", "BGREWRITEAOF", "a replica's full synchronization"; "" for
// other children.
std::string ForkCommandOf(const Thread &child);
// "INFO: sync_full rose from 0 to 1, a replica's full synchronization", if a fork of a child that writes a
// snapshot was followed by that, and what INFO says of its reason; else "". The same child may serve BGSAVE.
std::string SyncText(const Scene &scene, const ft_span &fork, const Thread &child);
// A child of the scene's process that existed in the interval; nullptr without one.
const Thread *LiveChild(const Scene &scene);

// Describes lock waits: the waiting thread, the lock holder, and what the lock holder did meanwhile.

// For a scene whose thread is a lock holder: "mc-worker (12) waited 15.0 ms for a
// lock that this thread held". Only wait time attributed to `cause` counts. ""
// without such a wait.
std::string LockWaiterText(const Scene &scene, Cause cause);
// The same wait in nanoseconds.
uint64_t LockWaiterNs(const Scene &scene, Cause cause);
// The sentence for lock-wait: the same with what the lock holder did meanwhile; or, if the scene's own thread
// waited, "waited 15.0 ms for a lock held by mc-itemcrawler (13), which was rehashing a dictionary". "" if
// the lock holder is unknown.
std::string LockSentence(const Scene &scene);

// The thread that waited longest for a lock of the scene's thread; nullptr where no such wait is known.
struct LockHold {
	const Thread *waiter = nullptr;
	uint64_t ns = 0;
};
LockHold LockHoldIn(const Scene &scene);

// Describes the server's on-CPU time: "the server was sending replies to about 5,000 clients for 31 ms".

// System calls of event-loop iterations, counted by the recorder; all 0 if it did not count. The counter of
// one iteration stops at 65,535.
struct IterationCalls {
	bool at_least =
	    false; // a lower bound: over several iterations, or of an iteration that only samples show
	uint64_t reads = 0, writes = 0, accepted = 0, closed = 0;
};

// The calls of one iteration's span.
IterationCalls CallsOf(const ft_span &iteration);

// The phrase for activities of one group, after "the server": "ran KEYS", "was accepting 4,010 and freeing
// 3,990 connections". `names`: the activities; without any "".
std::string ActivityWords(const std::vector<std::string> &names, const IterationCalls &calls);

// The time in which the thread ran the server's own code.
uint64_t BusyNs(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
std::string BusySentence(const Scene &scene);
// "about 5,000" for 5,001: approximate numbers have two digits.
std::string About(uint64_t n);
// The same for counted calls of iterations.
std::string AboutCalls(uint64_t calls);
// Whether the soft interrupts of this cause ran in the server's own sends: on the loopback device, the
// receiver's half of a packet is a soft interrupt in the sender's system call.
bool IsOfOwnSends(const Scene &scene, Cause cause);

// Related activities in an interval, which are printed as one.
struct BusyGroup {
	std::vector<std::string> names; // longest first
	uint64_t samples = 0, lua_samples = 0, kernel_samples = 0, time_ns = 0;
	double share = 0;  // of the on-CPU time
	std::string stack; // of the first activity
};

// Longest first. TLS code that took long per accepted connection is named as handshakes.
std::vector<BusyGroup> BusyGroupsOf(const OwnCode &own, uint64_t accepted);
// Joins the sending of messages with the PUBLISH that made them, if the longest iteration wrote to many
// clients and read from few. Returns to how many; 0: nothing was joined.
uint64_t MergeMessages(const Scene &scene, const Ran &ran, std::vector<BusyGroup> *groups);
constexpr const char *kTls = "TLS (libssl, libcrypto)", *kTlsHandshakes = "TLS handshakes";
// "one transaction (EXEC) of 150,000 commands", if most of an interval's samples were in one; else "".
std::string TransactionText(const Scene &scene, const OwnCode &own, uint64_t from_ns, uint64_t to_ns);
// The noun for a group: "KEYS", "EVAL (Lua script)", "Eviction of keys". `names`: at least one activity.
std::string BusyActor(const std::vector<std::string> &names);
// Adds the event-loop iterations that overlap the scene, and their calls. False: a span may contain several
// iterations.
bool CountIterations(const Scene &scene, uint64_t *count, IterationCalls *calls);

// The culprit: the event, code or process behind a cause, named in one clause for the first line of an
// answer: "fork() for BGREWRITEAOF took 43.7 ms".
//
// An episode's evidence says what happened in that episode. The culprit adds up all episodes that have
// evidence, so that the first line speaks of the whole run.

class CulpritFinder
{
public:
	explicit CulpritFinder(Cause cause) : cause_(cause) {}
	Cause cause() const { return cause_; }
	// Adds a scene of the cause. Scenes of one timeline are added in order of time.
	void Add(const Scene &scene, const EpisodeCause &cause);
	// Empty if no scene named anything.
	Culprit Result() const;
	// Whether most of it were soft interrupts of the server's own sends.
	bool OfOwnSends() const;

private:
	// The total of one actor. Its clause has placeholders: \1 the time, \2 how often, \3 the CPU. Names
	// in clauses are sanitized: they hold no control characters.
	struct Actor {
		uint64_t ns = 0, longest_ns = 0, times = 0;
		std::set<int> cpus;
		std::set<uint32_t> tids; // of CPU holders
		std::string meanwhile;	 // as of Culprit
		std::string subject;	 // likewise
		bool behind_fsync = false;
		std::map<std::string, uint64_t> during; // time by the command in which it was; "": unknown
		uint64_t own_sends_ns = 0;		// of soft interrupts in the server's own sends
		std::set<std::string> senders;		// of the command: clients; "": unknown ones
		// Its key may be any of these; none: it is not known, or there were several.
		std::optional<std::set<std::string>> keys;
		uint64_t receivers = 0; // of its messages in one iteration, at most
	};
	using Named = std::pair<const std::string, Actor>;
	Actor &Note(const std::string &clause, uint64_t ns, uint64_t times);
	Actor &NoteIn(const Scene &scene, const std::string &clause);
	void AddForks(const Scene &scene);
	void AddFaults(const Scene &scene);
	void AddFiles(const Scene &scene);
	void AddFsyncs(const Scene &scene);
	void AddWaits(const Scene &scene);
	void AddInterrupts(const Scene &scene);
	void AddBlocked(const Scene &scene);
	void AddLock(const Scene &scene);
	void AddBusy(const Scene &scene);
	static void AddSenders(const std::vector<Ran> &rans, Actor *actor);
	void AddClient(const Scene &scene, uint64_t late_ns);
	void AddOutage(const Scene &scene);
	void AddStalledTarget(const Scene &scene);
	void AddOf(const Scene &scene, const EpisodeCause &cause, uint64_t ns);
	std::string ForksText() const;
	std::string FaultsText() const;
	std::string WaitsText() const;
	std::string UnheldText(uint64_t held_ns) const;
	std::string BusyText() const;
	std::string ActorText(const Named &actor) const;
	static std::string DuringText(const Actor &actor);
	static std::string SendersText(const Actor &actor);
	static std::string KeysText(const Actor &actor);
	std::string ThreadsText() const;
	bool Several() const;		// no thread has most of the time
	bool IsMost(uint64_t ns) const; // of all_ns_
	std::vector<const Named *> Ranked() const;
	Actor Sum() const;

	Cause cause_;
	// By clause; for forks by purpose, for faults by child, for waits by CPU holder, for own code by
	// activity.
	std::map<std::string, Actor> actors_;
	std::map<const Timeline *, uint64_t> until_ns_; // the end of what was added, by timeline
	std::map<std::string, uint64_t> threads_;	// time in the cause, by thread
	uint64_t all_ns_ = 0;				// of all these threads
	uint64_t idle_ns_ = 0, short_ns_ = 0; // of waits: the CPU was idle; too short to have CPU holders
	uint64_t min_span_ns_ = 0;	      // shorter ones are
	std::set<std::pair<uint32_t, uint64_t>> forks_; // counted, by thread and start
	uint64_t iterations_ = 0;			// in which the server ran its own code; 0: unknown
	uint64_t accepted_ = 0;				// connections accepted in them
	bool many_ = false;				// a span may contain several iterations
};

// Which threads held the CPU while a scene's thread was ready to run.

// Threads of one name count together: ten compiler processes are one disturbance.
struct HolderByName {
	std::string name;
	uint64_t ns = 0;
	std::set<uint32_t> tids; // as their own kernel numbers them
	std::set<int> cpus;
};

// What TCP did with the load generator's sockets of these connections in [start, end], by the looks of the
// load generator: "the load generator's sockets retransmitted 2 segments on 1 connection". `connections`:
// with the end of their last slow request. "" if it did not look, or nothing happened and it did not look at
// each of them after that.
std::string LoadTcpSentence(const Run &run, const std::map<uint32_t, uint64_t> &connections,
			    uint64_t start_ns, uint64_t end_ns, uint64_t worst_ns);

// Longest first; empty if the recorder did not see which thread ran.
std::vector<HolderByName> CpuHoldersOf(const Scene &scene);
// "stress-ng (2 threads) for 27.0 ms, x (12) for 9.00 ms", at most three, and what is known of the rest of
// the time that was waited: the CPU was idle, or nothing is known. "" if there is nothing to say.
std::string CpuHoldersText(const Scene &scene, uint64_t waited_ns);
// "python3 (6652)", "stress-ng (2 threads)".
std::string CpuHolderName(const std::string &name, const std::set<uint32_t> &tids);

// Which peer a server waited for inside an event-loop iteration, which of its functions waited, and recorded
// processes that could not answer meanwhile.

// A recorded process that did not serve for at least half of an interval.
struct StalledTarget {
	std::string text; // "redis-server (812) was stopped by SIGSTOP for \1"
	uint64_t ns;
	uint32_t pid;
	std::string Sentence() const; // with the time, without a full stop
};

// The one that did so longest, apart from the scene's process. Nothing without one.
std::optional<StalledTarget> StalledTargetIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
// The same in the scene's longest wait of this cause: "; redis-server (812) was stopped by SIGSTOP for 300 ms
// meanwhile"; "" without one.
std::string StalledTargetText(const Scene &scene, Cause waited);

// The scene's longest wait for a peer: "waited 1.00 s in poll() for 127.0.0.1:53 (udp), inside an event-loop
// iteration of 1.00 s (getaddrinfo < anetResolve)".
std::string PeerSentence(const Scene &scene);
// "Meanwhile redis-server (812) was stopped by SIGSTOP for 300 ms.", if that is the peer of the longest wait;
// else "".
std::string PeerMeanwhile(const Scene &scene);
// What the waits have in common, without times: "redis-server (812) waited \1 in poll() for an answer from
// 127.0.0.1:53 (udp), inside an event-loop iteration".
std::string PeerClause(const Scene &scene);

// Sentences from the server's own reports: its slow log, latency monitor and forks, recorded by the load
// generator's observer; and outages, recorded by the load generator. Without a recorder on the server's host
// they are often the only evidence.

// Sentences on reports of from_ns..to_ns (CLOCK_MONOTONIC), the longest first, at most `limit`. Reports
// shorter than a quarter of worst_ns, the episode's longest latency, are left out: they do not explain it.
std::vector<std::string> ServerReportSentences(const Run &run, const Commands &commands, uint64_t from_ns,
					       uint64_t to_ns, uint64_t worst_ns, size_t limit);

// "FCALL": the command of the longest entry of the slow log that may be of the scene and lasted
// at_least_ns; "" without one.
std::string SlowCommand(const Scene &scene, uint64_t at_least_ns);

// The longest outage that overlaps from_ns..to_ns, as a clause of CulpritFinder, and its length in ns; 0
// without one.
std::string OutageClause(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t *ns);

// Describes what kept a thread from running: a cgroup freezer, a tracer, or a CPU quota.

// "the server's cgroup /docker/1f2e... (container web) was frozen for 300 ms (3 times)".
std::string FrozenSentence(const Scene &scene);
// "cgroup /docker/1f2e... (container web)"; "cgroup" if it is unknown.
std::string FrozenGroupText(const Scene &scene);
// "was stopped 4,211 times by strace (pid 77), 300 ms in total".
std::string PtraceSentence(const Scene &scene);
// Whether a stall keeps a load thread from running. Interrupts take time on the CPU, but do not.
constexpr bool StallsClient(Cause cause)
{
	return IsStall(cause) && !IsInterrupt(cause);
}
// "was stopped by SIGSTOP for 30.0 ms": a stall of the scene's thread without its subject.
std::string StallPhrase(const Scene &scene, Cause cause, const std::string &duration);
// "strace (pid 77)", the tracer that stopped the thread longest; "a tracer" if it is unknown.
std::string TracerText(const Scene &scene);
// "the cgroup /x had used up its CPU quota (20.0 ms of every 100 ms): the thread waited 80.0 ms, throttled 9
// times".
std::string QuotaSentence(const Scene &scene);
// The same as a clause of CulpritFinder, for the first line of an answer.
std::string QuotaClause(const Scene &scene);

// Describes what counters of the host show: CPU time that the hypervisor took, OOM kills, memory limits of
// cgroups, dropped caches.

// "the hypervisor took 40.0 ms of CPU time from this host (steal) within 200 ms", of an interval whose
// longest request took worst_ns; "" if less than a quarter of worst_ns was stolen.
std::string StealSentence(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns);

// "the kernel's OOM killer killed 1 process on this host, at a time known to within 100 ms", and the same of
// drop_caches and of the memory limits of the target's cgroups; none if the counters did not grow in the
// interval.
std::vector<std::string> MemoryEventSentences(const Run &run, uint64_t from_ns, uint64_t to_ns);

// Describes the disks' activity while a server thread waited for a disk.

// "; meanwhile block device vda wrote 84.0 MB, most for kworker/u4:1 (55); the device was busy 97 % of the
// time, with 3.4 requests in flight on average; files were written by dd (4377), 80.1 MB in 2.31 s", of the
// device that was busy longest in [from_ns, to_ns), with data or without; "" if all were idle: then the wait
// was for something else. Writers include the 5 s before the interval, because pages are written back late.
std::string DiskText(const Scene &scene, uint64_t from_ns, uint64_t to_ns);

// Describes the files of blocked calls.

// The wait that shows what a span of a thread waited for: the span itself; of a frame, the longest wait in it
// with a file or a stack; nullptr without one.
const ft_span *WaitIn(const Run &run, const Thread &thread, const ft_span &s);
// " of nodes.conf", the file of a span of FT_FSYNC; "" if it is unknown.
std::string FileOfSync(const Run &run, const Thread &thread, const ft_span &s);
// The same of all such spans of the scene's thread in the scene: " of nodes.conf and others" if none has most
// of the time.
std::string FileOfSyncs(const Scene &scene);
// " to fd 1 (stdout), a pipe that logger (123) did not read", of a wait in a call on a pipe, a terminal or
// another file that is not on a disk; "" for other calls, and in old recordings.
std::string SpecialFileText(const Scene &scene, const ft_span &s);
// "; it waited for a commit of the file system's journal (kernel stack: a < b)"; "; kernel stack: a < b" if
// the functions do not tell; "" without a stack.
std::string StackReasonText(const Detail &detail);
// Why a span waited for a file: the disk's activity, or if the disk was idle, the kernel's stack. As
// DiskText.
std::string FileWaitText(const Scene &scene, const ft_span &s);

// Makes the sentences of evidence.

// One sentence about a cause in a scene; "" if there is nothing to say.
std::string Sentence(const Scene &scene, const EpisodeCause &cause);
// The sentence about a cause of which nothing else is known, so that no smaller cause takes its place; "" for
// causes that other evidence is about (outages).
std::string ShareSentence(const EpisodeCause &cause);

} // namespace forktail::analysis
