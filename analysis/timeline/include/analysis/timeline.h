// SPDX-License-Identifier: MIT
// What each thread did when: its account by cause, its waits and their holders, and which thread served which
// connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "recording/owners.h"

namespace forktail::analysis
{

// The size of a page that a write copies. Linux splits a huge page before it copies a part of it.
constexpr uint64_t kPageBytes = 4096;

// The causes of a request's time. causes.def has one row for each; nothing else in the analysis lists them.
//
// Owners (recording/owners.h) are what the BPF programs account; causes are what a user reads. The two differ
// where a request sees more than a thread does: the client, the network, and a server that is busy with other
// commands.

enum class Cause : uint8_t {
#define CAUSE(id, ...) id,
#include "causes.def"
#undef CAUSE
};

// The family of a cause. On the page, causes of one family share a mark and a hue.
enum class Family : uint8_t { Memory, Files, Cpu, Interrupts, Server, Network, Client, Unknown };

enum class Kind : uint8_t {
	Stall,	  // the server thread could not run its own code although it had work, or could have had
	Other,	  // its own code, the client, the network, or unknown
	Timeline, // only on a thread's timeline, never a request's cause
};

// How evidence describes a cause: the function in evidence/sentences.cc, and the meaning of `words` for it.
enum class SentenceKind : uint8_t {
	None,
	Blocked, // words: a sentence, with % for the time and & for the call or fault; "": made of the call
		 // and the kernel stack
	Busy,
	Client,
	Faults, // words: "one|many"
	File,	// words: the preposition between the call and the file
	Fork,
	Frozen,
	Fsync,
	Interrupt,
	IoThread,
	Lock, // by lock holder; if unknown, as Blocked
	Held,
	Network,
	Peer,
	Ptrace,
	Quota,
	RunQueue,
	Unknown,
};

constexpr uint32_t kNoOwner = UINT32_MAX;

struct CauseInfo {
	const char *name;
	uint32_t owner; // enum ft_owner, or kNoOwner
	Family family;
	Kind kind;
	SentenceKind telling;
	const char *words;
	const char *light, *dark; // #rrggbb for a light and for a dark page
	const char *meaning;
	const char *thread, *seen_by; // columns of docs/reference/causes.md
};

inline constexpr CauseInfo kCauseTable[] = {
#define CAUSE(id, name, owner, family, kind, telling, words, light, dark, meaning, thread, seen_by)          \
	{name, owner,	Family::family, Kind::kind, SentenceKind::telling, words, light,                     \
	 dark, meaning, thread,		seen_by},
#include "causes.def"
#undef CAUSE
};

// A remedy: remedies.def has one row for each.
struct RemedyInfo {
	enum Change { Live, Config, Restart, Host, Other };
	enum Measured { No, Lowers, Untested };
	const char *id;
	const char *causes; // names, with spaces between
	const char *when, *text, *command;
	Change change;
	const char *loses;
	Measured measured;

	bool IsFor(const char *cause) const;
};

inline constexpr RemedyInfo kRemedyTable[] = {
#define REMEDY(id, causes, when, text, command, change, loses, measured)                                     \
	{id, causes, when, text, command, RemedyInfo::change, loses, RemedyInfo::measured},
#include "remedies.def"
#undef REMEDY
};

// "lowers", "untested" or "", for scripts.
const char *RemedyMeasured(const RemedyInfo &remedy);
// How it is changed: "live", "config", "restart", "host" or "other", likewise.
const char *RemedyChange(const RemedyInfo &remedy);

constexpr int CountOf(Kind kind)
{
	int count = 0;
	for (const CauseInfo &info : kCauseTable)
		count += info.kind == kind;
	return count;
}

constexpr int kTimelineCauses = static_cast<int>(std::size(kCauseTable));
constexpr int kCauses = kTimelineCauses - CountOf(Kind::Timeline); // causes of a request
constexpr int kStallCauses = CountOf(Kind::Stall);

constexpr int Index(Cause c)
{
	return static_cast<int>(c);
}
constexpr const CauseInfo &InfoOf(Cause c)
{
	return kCauseTable[Index(c)];
}
constexpr bool IsStall(Cause c)
{
	return InfoOf(c).kind == Kind::Stall;
}
constexpr bool IsInterrupt(Cause c)
{
	return InfoOf(c).family == Family::Interrupts;
}

// Arrays of only stalls, and of only request causes, are prefixes of the full arrays.
constexpr bool KindsAreInOrder()
{
	for (int i = 1; i < kTimelineCauses; i++)
		if (kCauseTable[i].kind < kCauseTable[i - 1].kind)
			return false;
	return true;
}
static_assert(KindsAreInOrder(),
	      "causes.def: stalls first, then what is none, then what is on timelines only");

// The stable name: "fork", "softirq/net_rx", "server-busy" ...
constexpr const char *CauseName(Cause c)
{
	return InfoOf(c).name;
}
// The same for a thread's account, where the thread's own code is "own-code" rather than "server-busy".
const char *AccountName(Cause c);
// "memory", "files" ...
const char *FamilyName(Family family);
// The cause of a recorded owner (enum ft_owner). Overlays, and owners of a newer recorder, are Unknown.
Cause CauseOfOwner(uint32_t owner);
// The cause of the runnable part of an off-CPU span with these flags (enum ft_span_flags).
Cause WaitCauseOf(uint8_t span_flags);
// True and *cause set if `name` is the stable name of a request cause.
bool CauseByName(const char *name, Cause *cause);

// A thread's timeline: the owner of each instant, as one sorted array of pieces without overlaps, and without
// gaps inside the thread's account. docs/how-it-works/attribution.md describes how it follows from spans and
// tallies, and where it is an estimate.

constexpr uint32_t kNoSpan = UINT32_MAX;
constexpr uint32_t kNoMix = UINT32_MAX;

// [start_ns, next piece's start). A piece has one cause, or is the mix of short intervals between spans in a
// tally window. In a mix `cause` is ServerBusy (own code, usually the largest part).
struct Piece {
	uint64_t start_ns;
	uint32_t span; // index into Run::spans of the span that owns it, or kNoSpan
	uint32_t mix;  // index into Timeline::mixes, or kNoMix
	Cause cause;
};

// The composition of the time between spans in one tally window: entries are (cause, ns) and sum to total_ns.
struct MixPart {
	Cause cause;
	uint64_t ns;
};
struct Mix {
	uint32_t first_part;
	uint32_t part_count;
	uint64_t total_ns;
};

// [start_ns, end_ns) in which the thread waited for another one. The causes of the pieces there are what the
// other one did.
struct Foreign {
	uint64_t start_ns, end_ns;
	uint32_t thread; // index into Run::threads
	Cause cause;
};

// Nanoseconds by cause, including Idle.
using CauseTimes = std::array<uint64_t, kTimelineCauses>;

struct Timeline {
	uint32_t thread = UINT32_MAX; // index into Run::threads
	std::vector<Piece> pieces;    // the last one starts at the end and is a sentinel
	std::vector<Mix> mixes;
	std::vector<MixPart> mix_parts;
	// Instants known to be idle: the server's queue was empty then. Sorted. A wait inside an event-loop
	// iteration is none: requests may be in the queue.
	std::vector<uint64_t> idle_ns;
	std::vector<TimeSpan> waits_inside; // such waits, in order
	std::vector<Foreign> foreign;	    // by start, not overlapping
	// Sums of whole pieces before every kStride-th piece (SumUp), and a coarse index of pieces by time.
	std::vector<CauseTimes> sums;
	std::vector<uint32_t> index;
	uint32_t index_shift = 0;

	bool empty() const { return pieces.size() < 2; }
	uint64_t start_ns() const { return empty() ? 0 : pieces.front().start_ns; }
	uint64_t end_ns() const { return empty() ? 0 : pieces.back().start_ns; }
};

// Builds the timeline of run.threads[thread], as far as its records are loaded (Run::loaded_from_ns). Where
// events of that thread may have been dropped, time without a span is Unknown.
Timeline BuildTimeline(const Run &run, uint32_t thread);

// Calls `see` with each foreign interval that overlaps [from_ns, to_ns), and its length there.
template <typename See> void EachForeign(const Timeline &t, uint64_t from_ns, uint64_t to_ns, See see)
{
	// They do not overlap, so ends are in the same order as starts.
	auto f = std::partition_point(t.foreign.begin(), t.foreign.end(),
				      [&](const Foreign &x) { return x.end_ns <= from_ns; });
	for (; f != t.foreign.end() && f->start_ns < to_ns; ++f)
		see(*f, std::min(f->end_ns, to_ns) - std::max(f->start_ns, from_ns));
}

// Rebuilds the index of a timeline after its pieces changed.
void IndexTimeline(Timeline *timeline);
// Builds the sums that make AddTimes over many pieces fast. The results are the same without them.
void SumUp(Timeline *timeline);

// The piece that contains t_ns, for start_ns() <= t_ns < end_ns().
uint32_t PieceAt(const Timeline &timeline, uint64_t t_ns);

// Whether t_ns is in a wait inside an event-loop iteration, which is no idle time.
bool WaitsInside(const Timeline &timeline, uint64_t t_ns);

// The recorded event-loop iteration of a thread that contains t_ns; nullptr: none, or it may be several.
const ft_span *IterationAt(const Run &run, const Thread &thread, uint64_t t_ns);
// The part of that iteration in which it does not take further requests: from where the thread runs, after a
// wait for the CPU or a stop at its begin. Empty if t_ns is not in it.
TimeSpan ClosedIteration(const Run &run, const Timeline &timeline, uint64_t t_ns);

// Adds the times of [from_ns, to_ns) to *times; exactly to_ns - from_ns is added. Time outside the timeline
// is Unknown.
void AddTimes(const Timeline &timeline, uint64_t from_ns, uint64_t to_ns, CauseTimes *times);

// Adds `ns` of a piece, in the proportions of its mix.
void AddPiece(const Timeline &timeline, const Piece &piece, uint64_t ns, CauseTimes *times);

// A thread's account, from its own times and tallies (not from the timeline): accounted time against elapsed
// time.
struct Account {
	uint32_t thread = 0; // index into Run::threads
	uint64_t wall_ns = 0;
	uint64_t accounted_ns = 0;
	CauseTimes by_cause = {};
};
Account AccountOf(const Run &run, uint32_t thread);

// The accounts of all threads, summed over a run's stretches in order.
class Accounts
{
public:
	// Adds what began in [from_ns, to_ns), which must be loaded.
	void Add(const Run &run, uint64_t from_ns, uint64_t to_ns);
	// Per Run::threads, after everything was added.
	std::vector<Account> Result(const Run &run) const;
	// Whether a thread has an event loop, the number of its known iterations, and their median length.
	bool HasEventLoop(size_t thread) const { return threads_[thread].loop; }
	uint64_t Turns(size_t thread) const { return threads_[thread].iterations; }
	uint64_t UsualTurnNs(size_t thread) const;
	const Counted &CountedOf(size_t thread) const { return threads_[thread].counted; }
	// Whether the lock of any wait is known.
	bool WaitsForLocks() const { return waits_for_locks_; }

private:
	struct OfThread {
		CauseTimes by_cause = {};
		bool loop = false;
		uint64_t iterations = 0;
		Counted counted = {};
		// Every `stride`-th iteration is stored, so that their number is bounded.
		uint64_t stride = 1;
		std::vector<uint64_t> iteration_ns = {};
	};
	void AddIteration(const ft_span &iteration, OfThread *to);
	std::vector<OfThread> threads_;
	bool waits_for_locks_ = false;
};

// The serving thread of a server's connections; docs/how-it-works/attribution.md has the rule. `server` is an
// index into run.servers, or -1 if no request log names one. Returns an index into run.threads, or -1 and a
// sentence in *why.
int ServingThread(const Run &run, const Accounts &accounts, int server, std::string *why);
// For a run that is loaded completely.
int ServingThread(const Run &run, int server, std::string *why);
// The same for a server behind a proxy.
int InstanceThread(const Run &run, const Accounts &accounts, const Behind &instance, std::string *why);

// Processes that may wait for an answer of another server, before they answer. Without servers that answer by
// themselves: a Redis with a primary does not wait for it.
std::set<uint32_t> ClientsOfServers(const Run &run);
// Whether a process is a server that waits for no other one before it answers: Redis, memcached.
bool AnswersByItself(const Run &run, uint32_t process);
// By such process: where its outgoing connections lead to, except to other targets.
std::map<uint32_t, std::vector<std::string>> UnrecordedPeers(const Run &run);

// What a blocked thread waited for, if its kernel stack or its event-loop iteration shows more than the
// system call or fault.
//
// The recorder takes the stack of every wait that is long enough for a span, when the thread returns. So it
// takes no time of the server while that runs without waiting. Shorter waits keep the cause of their owner.

// Whether a thread waited for one peer: in poll, select or on a socket inside an event-loop iteration.
// Recorders before FT_PEER_WAIT wrote that as idle, or as a wait on a socket.
bool WaitsForPeer(const Run &run, const Thread &thread, const ft_span &span);

class Waits
{
public:
	explicit Waits(const Run &run);
	// The cause of the blocked part of an off-CPU span of the thread.
	Cause CauseOf(const ft_span &span, const Thread &thread) const
	{
		if (span.detail < causes_.size() && causes_[span.detail] != Cause::Unknown)
			return causes_[span.detail];
		return WaitsForPeer(run_, thread, span) ? Cause::PeerWait : CauseOfOwner(span.owner);
	}

private:
	const Run &run_;
	std::vector<Cause> causes_; // by detail; Unknown: its stack shows nothing
};

// The cause that a kernel stack ("function+0x1f", innermost first) shows, or Unknown.
Cause CauseOfStack(const std::vector<std::string> &stack);

// What a blocked thread waited for by its kernel stack, as "a file lock that another process held"; "" if its
// functions do not tell.
std::string WaitReason(const std::vector<std::string> &stack);

// The functions in which a thread was blocked, innermost first, at most `most`, without offsets and without
// the scheduler's own at the top: "submit_bio_wait < blkdev_issue_flush". "" without a stack.
std::string StackText(const Detail &detail, size_t most);

// The holders of the CPU for which a thread waited. The recorder writes the CPU slices as the kernel
// scheduled them. Their meaning for a wait is decided here, for explain and for live tools, so that a better
// rule applies to old recordings too.

struct CpuHolder {
	uint32_t tid; // 0: the CPU was idle
	uint64_t ns;
	const ft_cpu_slice *slice; // its last CPU slice
};

// The holders of a CPU in [from_ns, to_ns), longest first; of equal ones the last holder. `slices` are the
// CPU slices of that CPU, by start, not overlapping.
std::vector<CpuHolder> CpuHolders(std::span<const ft_cpu_slice> slices, uint64_t from_ns, uint64_t to_ns);

// Whether ksoftirqd delayed a wait of that length: Cause::SoftirqDeferred.
bool IsDeferred(const std::vector<CpuHolder> &holders, uint64_t wait_ns);

// The longest holder of a wait for a CPU, by the slices in run.cpu_slices; in an old recording, whose
// recorder decided it, as recorded (format.h).
struct WaitHolder {
	uint32_t tid = 0; // 0: none, or unknown
	uint64_t ns = 0;
	bool deferred = false; // the cause of the wait is SoftirqDeferred
	std::string name = {};
};
WaitHolder HolderOf(const Run &run, const ft_span &wait);

// All holders during the runnable part of a wait that is in [from_ns, to_ns), longest first; tid 0 is the
// idle CPU. In an old recording, the longest holder only.
std::vector<WaitHolder> WaitHolders(const Run &run, const ft_span &wait, uint64_t from_ns, uint64_t to_ns);

// The cause of the runnable part of an off-CPU span.
Cause WaitCauseOf(const Run &run, const ft_span &wait);

// The name of a span's detail; for a wait without one, the CPU holder's name; "" if neither is known.
std::string NameOf(const Run &run, const ft_span &span);

// Waits in futex: the lock of each, and the threads that it waited for. The recorder writes ids, one of them
// a word of the process's memory; their meaning is decided here.

// A wait with a span, and the threads that it may have waited for.
struct LockWait {
	static constexpr uint32_t kNobody = UINT32_MAX; // unknown, or none

	uint64_t start_ns, end_ns; // blocked: at end_ns the thread was woken
	uint64_t address;	   // of the lock word
	uint32_t span;		   // index into Run::spans
	uint32_t holder; // the lock holder when the wait began, by the lock word: index into Run::threads
	uint32_t waker;	 // likewise, the waker, which was in futex for that word
};

// Whether a span has the lock that it waited for. Spans of old recordings do not.
inline bool IsLockWait(const ft_span &s)
{
	return s.owner == FT_LOCK_WAIT && s.off_cpu && !s.depth && s.arg[0];
}

// A thread's lock waits by start, not overlapping. `thread` is an index into Run::threads.
std::vector<LockWait> FindLockWaits(const Run &run, const ThreadFinder &finder, uint32_t thread);

// Timelines of threads that others wait for.

// Timelines of any threads of a run from their own records, each built on first use.
class ThreadTimelines
{
public:
	explicit ThreadTimelines(const Run &run) : run_(&run) {}
	const Run &run() const { return *run_; }
	// `thread` is an index into Run::threads.
	const Timeline &Of(uint32_t thread);
	const std::vector<LockWait> &LockWaitsOf(uint32_t thread);

private:
	const Run *run_;
	std::map<uint32_t, Timeline> built_;
	std::optional<ThreadFinder> finder_;
	std::map<uint32_t, std::vector<LockWait>> lock_waits_;
};

// Waits for a lock that another thread holds: the lock holder, and what it did in that time.
// docs/how-it-works/attribution.md has the rules and their error bounds.

// What the thread of a timeline waited for in futex at other threads of its process, in waits that overlap
// [from_ns, to_ns): intervals for TakeForeign. A cause other than lock-wait is what delayed the lock holder.
// lock-wait means that the holder ran, or waited for something without a cause. Time in no interval is a
// lock-wait with unknown holder.
std::vector<Foreign> LockForeign(ThreadTimelines *threads, const Timeline &timeline, uint64_t from_ns = 0,
				 uint64_t to_ns = UINT64_MAX);

// A server's main thread that spins until its helpers finish: Redis' io-threads.
// docs/how-it-works/attribution.md, "Waiting for helpers", has the rule and its error bound.

// Functions in which main threads only wait for their helpers.
inline constexpr const char *kHelperWaits[] = {
    "handleClientsWithPendingWritesUsingThreads", // Redis 6 and 7
    "handleClientsWithPendingReadsUsingThreads",
    "pauseIOThreadsRange", // Redis 8
    "resumeIOThreadsRange",
    "waitForClientIO", // Valkey 8
    "drainIOThreadsQueue",
};

// Intervals in which `main` (the timeline of a process's main thread, as recorded) spun for a helper that
// could not run, by that helper's causes, or (Cause::IoThread) for a helper that was running. In order.
std::vector<Foreign> FindSpins(ThreadTimelines *threads, const Timeline &main);

// Which thread served which connection, and when: docs/how-it-works/attribution.md, "Which thread serves".

constexpr uint32_t kNoThread = UINT32_MAX;

// [from_ns, to_ns) of a connection.
struct Served {
	uint64_t from_ns, to_ns;
	uint32_t thread; // index into Run::threads
};

// Per Run::connections, in order and not overlapping; empty if unknown. All are empty without a recorder on
// the server's host, in an older recording, or for a server without epoll.
using ServedConnections = std::vector<std::vector<Served>>;
ServedConnections FindServed(const Run &run);

// The process of server `server` of the run (-1: none is named); 0 and *why if unknown.
uint32_t ProcessOfServer(const Run &run, int server, std::string *why);

// The serving thread of a connection at an instant, or kNoThread.
uint32_t ThreadAt(const std::vector<Served> &connection, uint64_t t_ns);

// A timeline reduced to four running sums, to look at every request of a run in a few nanoseconds. Its
// results are within a few nanoseconds of the exact account, which only requests that matter get.

// Nanoseconds of an interval by kind; the rest is unknown.
struct Usage {
	double stall = 0;
	double busy = 0;
	double idle = 0;
	double socket = 0; // blocked on a socket
};

struct Curve {
	const Timeline *timeline = nullptr;
	std::vector<Usage> before; // per piece, the sentinel included: sums up to its start
};

Curve BuildCurve(const Timeline &timeline);

// The sums up to t_ns. *hint is the piece at which the last call ended: requests are almost in order, so it
// is usually that one or the next.
inline Usage UsageUntil(const Curve &c, uint64_t t_ns, uint32_t *hint)
{
	const std::vector<Piece> &pieces = c.timeline->pieces;
	if (c.before.empty() || t_ns <= pieces.front().start_ns)
		return {};
	if (t_ns >= pieces.back().start_ns)
		return c.before.back();
	uint32_t p = *hint;
	if (t_ns < pieces[p].start_ns || t_ns >= pieces[p + 1].start_ns) {
		if (p + 2 < pieces.size() && t_ns >= pieces[p + 1].start_ns && t_ns < pieces[p + 2].start_ns)
			p++;
		else
			p = PieceAt(*c.timeline, t_ns);
		*hint = p;
	}
	double part = static_cast<double>(t_ns - pieces[p].start_ns) /
		      static_cast<double>(pieces[p + 1].start_ns - pieces[p].start_ns);
	const Usage &a = c.before[p], &b = c.before[p + 1];
	return {a.stall + part * (b.stall - a.stall), a.busy + part * (b.busy - a.busy),
		a.idle + part * (b.idle - a.idle), a.socket + part * (b.socket - a.socket)};
}

inline Usage UsageOf(const Curve &c, uint64_t from_ns, uint64_t to_ns, uint32_t *hint)
{
	if (from_ns >= to_ns)
		return {};
	Usage a = UsageUntil(c, from_ns, hint), b = UsageUntil(c, to_ns, hint);
	return {b.stall - a.stall, b.busy - a.busy, b.idle - a.idle, b.socket - a.socket};
}

// The load generator's threads, if they were recorded with the server (not with `forktail record
// --no-client`): the thread that sent and read a request, and when a server was idle because that thread
// stalled.

struct Clients {
	std::vector<Timeline> timelines;    // of recorded load threads
	std::vector<int32_t> of_connection; // per Run::connections: index into timelines; -1: not recorded

	// Index of a connection's load thread, or -1.
	int32_t Of(uint32_t connection) const
	{
		return connection < of_connection.size() ? of_connection[connection] : -1;
	}
};

// Finds them by the thread ids that the load generator logs for each test. `first_due_ns`: per
// Run::connections, the due time of its first request; UINT64_MAX, or beyond the end: it had none.
Clients FindClients(const Run &run, const std::vector<uint64_t> &first_due_ns);

// Intervals in which the server's thread was idle and a load thread stalled (not idle itself, not
// interrupted). An answer that waited then waited for the load generator. Both stalls and idle times are
// spans, so nothing here is an estimate.
struct StalledIdle {
	std::vector<uint64_t> start_ns, end_ns; // in order
	std::vector<uint64_t> before_ns;	// their sum before each

	// The part of [from_ns, to_ns).
	uint64_t Between(uint64_t from_ns, uint64_t to_ns) const;
};
StalledIdle FindStalledIdle(const Timeline &server, const Timeline &client);

// Divides whole nanoseconds in given proportions without rounding loss: the largest-remainder method.
// Everything that must sum exactly uses it.

constexpr size_t kApportionMax = 128; // enough for the causes of two processes

// Apportion with intermediate numbers of this type; `total` is the sum of the weights, not 0.
template <typename Number>
void ApportionIn(uint64_t amount, const uint64_t *weight, size_t count, Number total, uint64_t *share)
{
	// A weight of 0 gets nothing.
	Number rest[kApportionMax];
	uint8_t at[kApportionMax];
	size_t weighing = 0;
	uint64_t given = 0;
	for (size_t i = 0; i < count; i++) {
		share[i] = 0;
		if (!weight[i])
			continue;
		Number product = static_cast<Number>(amount) * weight[i];
		share[i] = static_cast<uint64_t>(product / total);
		rest[weighing] = product % total;
		at[weighing++] = static_cast<uint8_t>(i);
		given += share[i];
	}
	// Fewer than `weighing` nanoseconds are left. Of equal remainders the first one gets one.
	for (uint64_t left = amount - given; left; left--) {
		size_t best = 0;
		for (size_t k = 1; k < weighing; k++)
			if (rest[k] > rest[best])
				best = k;
		share[at[best]]++;
		rest[best] = 0;
	}
}

// Sets share[i], i < count <= kApportionMax, to about amount * weight[i] / sum of weights (within 1), so that
// the shares sum to `amount`. All weights 0: everything goes to share[0].
inline void Apportion(uint64_t amount, const uint64_t *weight, size_t count, uint64_t *share)
{
	unsigned __int128 total = 0;
	uint64_t bits = amount;
	for (size_t i = 0; i < count; i++) {
		total += weight[i];
		bits |= weight[i];
	}
	if (total == 0) {
		for (size_t i = 0; i < count; i++)
			share[i] = i ? 0 : amount;
		return;
	}
	// The usual case: up to four seconds, products fit into one word.
	if (bits >> 32)
		ApportionIn<unsigned __int128>(amount, weight, count, total, share);
	else
		ApportionIn<uint64_t>(amount, weight, count, static_cast<uint64_t>(total), share);
}

// Waits for another thread: their causes are what the other thread did in that time.

// Gives the pieces of *timeline in these intervals (in order, not overlapping, within it) the intervals'
// causes, and stores the other threads.
void TakeForeign(const std::vector<Foreign> &intervals, Timeline *timeline);

// Finds what a serving thread waited for at other threads of its process: spinning for helpers, and
// locks that they held (locks.h).
void ResolveOthers(ThreadTimelines *threads, Timeline *timeline);

} // namespace forktail::analysis
