// SPDX-License-Identifier: MIT
// What a thread did on the CPU, and who held what it waited for: groups of activities by samples, holders
// of locks and CPUs, peers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "analysis/evidence.h"
#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "common/json.h"
#include "scene.h"

namespace forktail::analysis
{

// Related activities form one group: sending a reply is one group, in the server's code and in the kernel.
// Times come from samples, counts from the recorder. The number of writes in an iteration is exact. Servers
// usually make one write per client, so the number of clients is printed as "about".

namespace
{

// With fewer samples a time is printed as "about".
constexpr uint64_t kFewSamples = 5;
// A group with a smaller share of the samples is not printed, unless it is the first.
constexpr double kMinGroupShare = 0.2;
// Without samples, calls are printed from this number on.
constexpr uint64_t kManyCalls = 100;
// Code runs slower than usual if its speed is at most this part of it, in both with this many readings.
constexpr double kSlower = 0.7;
constexpr uint64_t kFewReadings = 5;
// An iteration with this many times more writes than reads sent messages to clients that had not asked.
constexpr uint64_t kPushes = 10;
// Soft interrupts with this part of their samples in sends are theirs.
constexpr double kMostSends = 0.8;
constexpr uint64_t kCallsLimit = 0xffff; // the largest count that a span holds
// A TLS handshake takes 200 us of CPU or more, a small encrypted reply about 1 us. TLS code that ran longer
// than this per accepted connection did handshakes.
constexpr uint64_t kLeastHandshakeNs = 50'000;

enum class Group { Single, Answers, Requests, Connections, Tls };

struct Words {
	const char *activity;
	Group group;
	const char *words; // after "the server"
	const char *noun = nullptr;
};

const Words kWords[] = {
    {"answer", Group::Answers, ""},
    {"kernel/send", Group::Answers, ""},
    {"read", Group::Requests, ""},
    {"kernel/receive", Group::Requests, ""},
    {"accept", Group::Connections, ""},
    {"free-client", Group::Connections, ""},
    {"kernel/accept", Group::Connections, ""},
    {"kernel/close", Group::Connections, ""},
    {"kernel/connection", Group::Connections, ""},
    {"tls-handshake", Group::Tls, ""},

    {"rehash", Group::Single, "was rehashing a dictionary", "Rehashing of a dictionary"},
    {"expire", Group::Single, "was expiring keys", "Expiry of keys"},
    {"evict", Group::Single, "was evicting keys", "Eviction of keys"},
    {"defrag", Group::Single, "ran active defragmentation", "Active defragmentation"},
    {"aof-flush", Group::Single, "was writing the AOF", "Writing the AOF"},
    {"aof-rewrite", Group::Single, "was rewriting the AOF", "Rewriting the AOF"},
    {"aof-load", Group::Single, "was loading the AOF", "Loading the AOF"},
    {"rdb-load", Group::Single, "was loading an RDB file", "Loading an RDB file"},
    {"rdb-save", Group::Single, "was saving an RDB file", "Saving an RDB file in the server itself"},
    {"forkless-save", Group::Single, "was handing keys to a save without fork", "A save without fork"},
    {"slot-migration", Group::Single, "was migrating slots of the cluster", "Migration of cluster slots"},
    {"tracking", Group::Single, "was telling clients which cached keys changed",
     "Invalidation of keys that clients cache"},
    {"evict-clients", Group::Single, "was disconnecting clients that used too much memory",
     "Disconnecting clients that use too much memory"},
    {"prefetch", Group::Single, "was loading the keys of a batch of commands into the CPU's cache",
     "Loading keys of a batch of commands into the CPU's cache"},
    {"hand-over", Group::Single, "was handing clients from and to its I/O threads",
     "Handing clients from and to I/O threads"},
    {"lazy-free", Group::Single, "was freeing deleted values in the background",
     "Freeing deleted values in the background"},
    {"replication", Group::Single, "ran replication code", "Replication"},
    {"replica-flush", Group::Single, "was flushing the data set before a full synchronization (emptyData)",
     "Flushing the data set before a full synchronization (emptyData)"},
    {"blocked-clients", Group::Single, "was serving clients that had been blocked on keys",
     "Serving clients that had been blocked on keys"},
    {"cluster", Group::Single, "was handling the cluster bus", "Cluster bus work"},
    {"sentinel", Group::Single, "ran Sentinel's timer", "Sentinel's timer"},
    {"parse", Group::Single, "was parsing requests", "Parsing requests"},
    {"dispatch", Group::Single, "was looking up and checking commands", "Looking up commands"},
    {"wait/io-threads", Group::Single, "was waiting for its I/O threads", "Waiting for the I/O threads"},
    {"cron", Group::Single, "ran its periodic tasks (cron)", "The server's periodic tasks (cron)"},
    {"event-loop", Group::Single, "ran its event loop", "The event loop"},
    {"script", Group::Single, "ran a Lua script", "A Lua script (EVAL or FCALL)"},
    {"command", Group::Single, "ran a command whose function has no name",
     "A command whose function has no name"},
    {"compress", Group::Single, "was compressing or decompressing data", "Compression"},
    {"system-call", Group::Single, "was entering or leaving system calls",
     "Entering and leaving system calls"},
    {"allocate", Group::Single, "was allocating or freeing memory", "Memory allocation"},
    {"kernel/poll", Group::Single, "was polling for ready connections", "epoll"},
    {"kernel/memory", Group::Single, "was requesting memory from the kernel or returning it",
     "Requesting memory from the kernel"},
    {"kernel/futex", Group::Single, "was waking other threads or taking locks",
     "Waking threads and taking locks"},
    {"kernel/pipe", Group::Single, "was reading or writing pipes", "Reading and writing pipes"},
    {"kernel/file-read", Group::Single, "was reading files", "Reading files"},
    {"kernel/file-write", Group::Single, "was writing files", "Writing files"},
    {"kernel/file-meta", Group::Single, "was opening, looking up or removing files",
     "Opening and removing files"},
    {"unknown", Group::Single, "ran code outside any known file", "Code outside any known file"},
};

const Words *WordsOf(const std::string &activity)
{
	for (const Words &w : kWords)
		if (activity == w.activity)
			return &w;
	return nullptr;
}

Group GroupOf(const std::string &activity)
{
	const Words *words = WordsOf(activity);
	if (words)
		return words->group;
	// OpenSSL's assembly has no symbols and no unwind tables: its callers are often unknown.
	const bool tls = activity.starts_with("module/libcrypto") || activity.starts_with("module/libssl");
	return tls ? Group::Tls : Group::Single;
}

// The phrase for an activity by its prefix.
std::string WordsOfPrefix(const std::string &name)
{
	size_t slash = name.find('/');
	std::string kind = name.substr(0, slash),
		    what = slash == std::string::npos ? "" : name.substr(slash + 1);
	if (kind == "command")
		return "ran " + what;
	if (kind == "function")
		return "ran " + what + "()";
	if (kind == "module")
		return what.ends_with(".so") ? "ran code of the module " + what
					     : "ran code of " + what + " without symbols";
	if (kind == "kernel")
		return "was in " + what + "()";
	return "ran " + name;
}

// " to about 5,000 clients". Several iterations may serve the same clients, so for those it is " (in at least
// 3,210 writes)".
std::string ClientsText(const char *preposition, uint64_t calls_made, const char *call,
			const IterationCalls &calls)
{
	if (calls_made < 2)
		return "";
	if (calls.at_least)
		return " (in at least " + common::FormatCount(calls_made) + " " + call + "s)";
	return std::string(" ") + preposition + " " + AboutCalls(calls_made) + " clients";
}

// "was accepting 4,010 and freeing 3,990 connections". Both samples and counts show which of the two
// happened.
std::string ConnectionsText(const std::vector<std::string> &names, const IterationCalls &calls)
{
	auto seen = [&](const char *a, const char *b) {
		return std::any_of(names.begin(), names.end(),
				   [&](const std::string &name) { return name == a || name == b; });
	};
	auto number = [](uint64_t n) { return n ? common::FormatCount(n) + " " : std::string(); };
	bool accepting = seen("accept", "kernel/accept") || calls.accepted;
	bool freeing = seen("free-client", "kernel/close") || calls.closed;
	uint64_t most = std::max(calls.accepted, calls.closed);
	std::string text = most && (calls.at_least || most >= kCallsLimit) ? "at least " : "";
	if (accepting && freeing && calls.accepted == calls.closed)
		return "was accepting and freeing " + text + number(calls.accepted) + "connections";
	if (accepting && freeing)
		return "was accepting " + text + number(calls.accepted) + "and freeing " +
		       number(calls.closed) + "connections";
	if (accepting)
		return "was accepting " + text + number(calls.accepted) + "connections";
	if (freeing)
		return "was freeing " + text + number(calls.closed) + "connections";
	return "was setting up connections";
}

std::string HandshakesText(const IterationCalls &calls)
{
	if (!calls.accepted)
		return "was doing TLS handshakes";
	return "was doing TLS handshakes, with " + std::string(calls.at_least ? "at least " : "") +
	       common::Plural(calls.accepted, "accepted connection", "accepted connections");
}

// "; the server ran KEYS for 96.0 ms of that time (95 of 97 samples: keysCommand < call < processCommand)"
// and further groups with a large share; "" without samples.
std::string ActivitiesText(const OwnCode &own, const IterationCalls &calls)
{
	std::string text;
	for (const BusyGroup &group : BusyGroupsOf(own, calls.accepted)) {
		if (!text.empty() && group.share < kMinGroupShare)
			break;
		text += (text.empty() ? "; the server " : ", and ") + ActivityWords(group.names, calls) +
			" for " + (group.samples < kFewSamples ? "about " : "") +
			common::FormatDuration(group.time_ns) + " of that time (" +
			common::FormatCount(group.samples) + " of " +
			common::Plural(own.samples, "sample", "samples") +
			(group.lua_samples ? ", " + common::FormatCount(group.lua_samples) + " in Lua" : "") +
			(group.kernel_samples
			     ? ", " + common::FormatCount(group.kernel_samples) + " in the kernel"
			     : "") +
			(group.stack.empty() ? "" : ": " + group.stack) + ")";
	}
	return text;
}

// " (a slow command or a long batch; 5,001 writes)", for scenes without samples.
std::string GuessText(const IterationCalls &calls)
{
	std::string text = " (a slow command or a long batch";
	auto add = [&](uint64_t n, const char *what) {
		if (n >= kManyCalls)
			text += "; " + common::FormatCount(n) + " " + what;
	};
	add(calls.reads, "reads");
	add(calls.writes, "writes");
	add(calls.accepted, "connections accepted");
	add(calls.closed, "connections closed");
	return text + ")";
}

void AddCalls(const IterationCalls &more, IterationCalls *sum)
{
	sum->reads += more.reads;
	sum->writes += more.writes;
	sum->accepted += more.accepted;
	sum->closed += more.closed;
}

// The longest iteration that overlaps the scene, or nullptr. Adds the calls of all such iterations to
// `calls`.
const ft_span *LongestIteration(const Scene &scene, IterationCalls *calls)
{
	const ft_span *longest = nullptr;
	EachIteration(scene, [&](const ft_span &s) {
		IterationCalls of_iteration = CallsOf(s);
		calls->at_least |= longest || of_iteration.at_least;
		if (!longest || s.duration_ns > longest->duration_ns)
			longest = &s;
		AddCalls(of_iteration, calls);
	});
	return longest;
}

// What the CPU counted in [from, to] while the scene's thread ran.
Counted CountedIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	const ft_counters *first = scene.run.counters.data() + scene.thread.first_counters;
	const ft_counters *end = first + scene.thread.counters_count;
	Counted counted;
	for (const ft_counters *c =
		 std::partition_point(first, end, [&](const ft_counters &x) { return x.t_ns <= from_ns; });
	     c < end && c->t_ns <= to_ns; c++)
		if (c->t_ns - c->duration_ns >= from_ns)
			counted.Add(*c);
	return counted;
}

std::string Decimals(double value)
{
	char text[32];
	snprintf(text, sizeof text, "%.3g", value);
	return text;
}

// "; it executed 0.6 instructions per cycle, usually 1.3 (...)", if its code ran slower than in the rest of
// the recording; "" otherwise, and without counters.
std::string SpeedText(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	const Counted now = CountedIn(scene, from_ns, to_ns), &all = scene.thread.counted;
	if (now.readings < kFewReadings || all.readings < now.readings + kFewReadings)
		return "";
	const Counted rest = all.Without(now);
	std::string text;
	if (now.PerCycle() < kSlower * rest.PerCycle()) {
		text += "; it executed " + Decimals(now.PerCycle()) + " instructions per cycle, usually " +
			Decimals(rest.PerCycle());
		text += now.Misses() * kSlower > rest.Misses()
			    ? ", with " + Decimals(now.Misses()) +
				  " cache misses per 1,000 instructions, usually " + Decimals(rest.Misses()) +
				  " (it waited for memory, or a neighbour used the cache)"
			    : " (a neighbour on the same core, or other code)";
	}
	if (now.Gigahertz() < kSlower * rest.Gigahertz())
		text += "; its CPU ran at " + Decimals(now.Gigahertz()) + " GHz, usually " +
			Decimals(rest.Gigahertz());
	return text.empty() || !now.software ? text : text + " (software events in the place of counters)";
}

OwnCode OwnCodeOf(const Scene &scene, const ft_span &iteration)
{
	return scene.activities ? OwnCodeIn(scene, iteration.start_ns, SpanEnd(iteration)) : OwnCode();
}

// "; another iteration took 158 ms; the server ran FLUSHALL for 155 ms of that time (...)", if the second
// longest iteration has a large share of the scene's own code and mostly ran something else than the longest
// one, whose activities are `own`.
std::string OtherIterationText(const Scene &scene, const ft_span &longest, const OwnCode &own)
{
	const ft_span *other = nullptr;
	EachIteration(scene, [&](const ft_span &s) {
		if (&s != &longest && !MayBeMany(s) && (!other || s.duration_ns > other->duration_ns))
			other = &s;
	});
	if (!other)
		return "";
	const uint64_t here_ns =
	    BusyNs(scene, std::max(scene.from_ns, other->start_ns), std::min(scene.to_ns, SpanEnd(*other)));
	if (static_cast<double>(here_ns) <
	    kMinGroupShare * static_cast<double>(BusyNs(scene, scene.from_ns, scene.to_ns)))
		return "";
	const OwnCode others = OwnCodeOf(scene, *other);
	const IterationCalls calls = CallsOf(*other);
	if (own.activities.empty() || others.activities.empty() ||
	    BusyGroupsOf(own, CallsOf(longest).accepted)[0].names[0] ==
		BusyGroupsOf(others, calls.accepted)[0].names[0])
		return "";
	return "; another iteration took " + common::FormatDuration(other->duration_ns) +
	       ActivitiesText(others, calls);
}

} // namespace

uint64_t BusyNs(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	CauseTimes times = {};
	AddTimes(scene.timeline, from_ns, to_ns, &times);
	return times[Index(Cause::ServerBusy)];
}

std::string About(uint64_t n)
{
	uint64_t unit = 1;
	while (n / unit >= 100)
		unit *= 10;
	return "about " + common::FormatCount((n + unit / 2) / unit * unit);
}

std::string AboutCalls(uint64_t calls)
{
	return calls < kCallsLimit ? About(calls)
				   : "more than " + common::FormatCount(kCallsLimit / 1000 * 1000);
}

bool IsOfOwnSends(const Scene &scene, Cause cause)
{
	const ft_cpu_sample *first = scene.run.cpu_samples.data() + scene.thread.first_cpu_sample;
	const ft_cpu_sample *end = first + scene.thread.cpu_sample_count;
	uint64_t all = 0, sends = 0;
	for (const ft_cpu_sample *s = std::partition_point(
		 first, end, [&](const ft_cpu_sample &x) { return x.t_ns < scene.from_ns; });
	     scene.activities && s < end && s->t_ns < scene.to_ns; s++) {
		if (CauseOfOwner(s->owner) != cause)
			continue;
		all++;
		sends +=
		    GroupOf(
			scene.activities->Of(static_cast<size_t>(s - scene.run.cpu_samples.data())).name) ==
		    Group::Answers;
	}
	return all >= kFewSamples && static_cast<double>(sends) >= kMostSends * static_cast<double>(all);
}

uint64_t MergeMessages(const Scene &scene, const Ran &ran, std::vector<BusyGroup> *groups)
{
	IterationCalls calls;
	const ft_span *longest = LongestIteration(scene, &calls);
	calls = longest ? CallsOf(*longest) : IterationCalls();
	std::string publish = ran.command == "PUBLISH" || ran.command == "SPUBLISH" ? ran.command : "";
	for (const BusyGroup &group : *groups)
		for (const char *command : {"PUBLISH", "SPUBLISH"})
			if (group.names[0] == std::string("command/") + command)
				publish = command;
	if (publish.empty() || calls.writes < kManyCalls || calls.writes < kPushes * calls.reads)
		return 0;
	BusyGroup merged = {{"command/" + publish}, 0, 0, 0, 0, 0, ""};
	std::vector<BusyGroup> others;
	for (const BusyGroup &group : *groups) {
		if (GroupOf(group.names[0]) != Group::Answers && group.names[0] != merged.names[0]) {
			others.push_back(group);
			continue;
		}
		merged.samples += group.samples;
		merged.time_ns += group.time_ns;
		merged.share += group.share;
	}
	if (merged.time_ns == 0)
		return 0;
	others.insert(
	    std::ranges::find_if(others, [&](const BusyGroup &g) { return g.share < merged.share; }), merged);
	*groups = std::move(others);
	return calls.writes;
}

std::vector<BusyGroup> BusyGroupsOf(const OwnCode &own, uint64_t accepted)
{
	std::vector<BusyGroup> groups;
	std::map<Group, size_t> known;
	for (const ActivityTime &a : own.activities) {
		Group group = GroupOf(a.name);
		auto found = known.find(group);
		if (group == Group::Single || found == known.end()) {
			known[group] = groups.size();
			groups.push_back({{}, 0, 0, 0, 0, 0, a.stack});
			found = known.find(group);
		}
		BusyGroup &group_of = groups[found->second];
		group_of.names.push_back(a.name);
		group_of.samples += a.samples;
		group_of.lua_samples += a.lua_samples;
		group_of.kernel_samples += a.kernel_samples;
		group_of.time_ns += a.time_ns;
		group_of.share += a.share;
	}
	if (const auto tls = known.find(Group::Tls); tls != known.end() && accepted)
		if (BusyGroup &group = groups[tls->second]; group.time_ns / accepted >= kLeastHandshakeNs)
			group.names[0] = "tls-handshake";
	std::stable_sort(groups.begin(), groups.end(),
			 [](const BusyGroup &a, const BusyGroup &b) { return a.share > b.share; });
	return groups;
}

IterationCalls CallsOf(const ft_span &iteration)
{
	uint64_t packed = iteration.arg[1];
	return {(iteration.flags & FT_SPAN_SAMPLED) != 0, packed & kCallsLimit, packed >> 16 & kCallsLimit,
		packed >> 32 & kCallsLimit, packed >> 48};
}

std::string ActivityWords(const std::vector<std::string> &names, const IterationCalls &calls)
{
	if (names.empty())
		return "";
	switch (GroupOf(names[0])) {
	case Group::Answers:
		return "was sending replies" + ClientsText("to", calls.writes, "write", calls);
	case Group::Requests:
		return "was reading requests" + ClientsText("of", calls.reads, "read", calls);
	case Group::Connections:
		return ConnectionsText(names, calls);
	case Group::Tls:
		return names[0] == "tls-handshake" ? HandshakesText(calls) : "ran TLS code";
	case Group::Single:
		break;
	}
	const Words *words = WordsOf(names[0]);
	return words ? words->words : WordsOfPrefix(names[0]);
}

std::string BusyActor(const std::vector<std::string> &names)
{
	switch (GroupOf(names[0])) {
	case Group::Answers:
		return "Sending replies";
	case Group::Requests:
		return "Reading requests";
	case Group::Connections:
		return "Accepting and closing connections";
	case Group::Tls:
		return names[0] == "tls-handshake" ? kTlsHandshakes : kTls;
	case Group::Single:
		break;
	}
	if (const Words *words = WordsOf(names[0]))
		return words->noun;
	const size_t slash = names[0].find('/');
	const std::string kind = names[0].substr(0, slash), what = names[0].substr(slash + 1);
	if (kind == "command")
		return what + (what.starts_with("EVAL") || what.starts_with("FCALL") ? " (Lua script)" : "");
	if (kind == "module")
		return (what.ends_with(".so") ? "The module " : "Code of ") + what;
	return what + (kind == "kernel" ? "() in the kernel" : "()");
}

// The recorder notes large transactions of the clients whose requests it records.
std::string TransactionText(const Scene &scene, const OwnCode &own, uint64_t from_ns, uint64_t to_ns)
{
	if (own.transaction_samples == 0 || own.transaction_samples * 2 < own.samples)
		return "";
	uint64_t count = 0, most = 0;
	for (const ServerReport &r : scene.run.reports) {
		if (r.kind != "transaction" || r.t_ns < from_ns || r.t_ns >= to_ns)
			continue;
		const common::Json note = common::ParseJson(r.text);
		if (common::Whole(note, "tid") != OwnId(scene.run, scene.thread.tid))
			continue;
		count++;
		most = std::max(most, common::Whole(note, "commands"));
	}
	if (count == 0)
		return "a transaction (EXEC)";
	return count == 1 ? "one transaction (EXEC) of " + common::FormatCount(most) + " commands"
			  : common::FormatCount(count) + " transactions (EXEC) of up to " +
				common::FormatCount(most) + " commands";
}

bool CountIterations(const Scene &scene, uint64_t *count, IterationCalls *calls)
{
	bool each_is_one = true;
	EachIteration(scene, [&](const ft_span &s) {
		++*count;
		each_is_one &= !MayBeMany(s);
		AddCalls(CallsOf(s), calls);
	});
	return each_is_one;
}

std::string BusySentence(const Scene &scene)
{
	IterationCalls calls;
	const ft_span *longest = LongestIteration(scene, &calls);
	uint64_t busy_ns = BusyNs(scene, scene.from_ns, scene.to_ns);
	uint64_t end_ns = longest ? SpanEnd(*longest) : 0;
	uint64_t in_iteration_ns = longest ? BusyNs(scene, longest->start_ns, end_ns) : 0;
	if (!busy_ns && !in_iteration_ns) // requests waited for own code before the episode
		return "";
	auto in_transaction = [&](const OwnCode &own, uint64_t from_ns, uint64_t to_ns) {
		const std::string transaction = TransactionText(scene, own, from_ns, to_ns);
		return transaction.empty() ? "" : ", mostly in " + transaction;
	};
	if (in_iteration_ns * 2 < busy_ns || !longest || MayBeMany(*longest))
		return "the server ran its own code for " + common::FormatDuration(busy_ns) + " of these " +
		       common::FormatDuration(scene.to_ns - scene.from_ns) +
		       ", in many event-loop iterations" +
		       in_transaction(scene.own_code, scene.from_ns, scene.to_ns) +
		       ActivitiesText(scene.own_code, calls) + SpeedText(scene, scene.from_ns, scene.to_ns);
	std::string text = "the server ran its own code for " + common::FormatDuration(in_iteration_ns) +
			   " in one event-loop iteration of " +
			   (longest->flags & FT_SPAN_SAMPLED ? "at least " : "") +
			   common::FormatDuration(longest->duration_ns);
	if (longest->arg[0])
		text += " with " + common::Plural(longest->arg[0], "ready connection", "ready connections");
	const OwnCode own = OwnCodeOf(scene, *longest);
	calls = CallsOf(*longest);
	return text + in_transaction(own, longest->start_ns, end_ns) +
	       (own.samples ? ActivitiesText(own, calls) : GuessText(calls)) +
	       SpeedText(scene, longest->start_ns, end_ns) + OtherIterationText(scene, *longest, own);
}

// The waiting thread's timeline holds a lock wait as what the lock holder did. The sentence is about the lock
// holder, because it caused the wait.

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

std::string Name(const Run &run, uint32_t thread)
{
	const Thread &t = run.threads[thread];
	return (t.comm.empty() ? "thread" : t.comm) + " (" + std::to_string(OwnId(run, t.tid)) + ")";
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
	return Name(scene.run, waiter) + " waited " + common::FormatDuration(waited.ns) +
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
	       Name(scene.run, holder) + ", which " +
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

// The threads that held the CPU during waits on the run queue, added up by name.

namespace
{

// A part of a wait below this share is not printed, unless it is the longest.
constexpr uint64_t kMinPart = 10;

std::string NameOfHolder(const Scene &scene, uint32_t tid, const std::string &name)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == tid && (!t.role.empty() || !t.comm.empty()))
			return t.role.empty() ? t.comm : t.role;
	return name.empty() ? "thread" : name;
}

} // namespace

std::vector<HolderByName> CpuHoldersOf(const Scene &scene)
{
	std::map<std::string, HolderByName> by_name;
	for (const auto &[tid, held] : scene.holders) {
		if (tid == 0)
			continue;
		std::string name = NameOfHolder(scene, tid, held.name);
		HolderByName &holder = by_name[name];
		holder.name = name;
		holder.ns += held.ns;
		holder.tids.insert(OwnId(scene.run, tid));
		holder.cpus.insert(OwnCpu(scene.run, held.cpu));
	}
	std::vector<HolderByName> holders;
	for (auto &[name, holder] : by_name)
		holders.push_back(std::move(holder));
	std::stable_sort(holders.begin(), holders.end(),
			 [](const HolderByName &a, const HolderByName &b) { return a.ns > b.ns; });
	return holders;
}

std::string CpuHoldersText(const Scene &scene, uint64_t waited_ns)
{
	const std::vector<HolderByName> holders = CpuHoldersOf(scene);
	const auto idle = scene.holders.find(0);
	const uint64_t idle_ns = idle == scene.holders.end() ? 0 : idle->second.ns;
	uint64_t held_ns = 0;
	for (const HolderByName &holder : holders)
		held_ns += holder.ns;
	std::string text;
	for (size_t i = 0; i < holders.size() && i < 3; i++) {
		const HolderByName &holder = holders[i];
		if (i && holder.ns * kMinPart < held_ns)
			break;
		text += (i ? ", " : "held by ") + CpuHolderName(holder.name, holder.tids) + " for " +
			common::FormatDuration(holder.ns);
	}
	if (idle_ns * kMinPart > waited_ns)
		text += (text.empty() ? "" : " and ") + std::string("idle for ") +
			common::FormatDuration(idle_ns) + ", until the kernel let the thread run on it";
	const uint64_t known_ns = held_ns + idle_ns;
	if (known_ns < waited_ns && (waited_ns - known_ns) * kMinPart > waited_ns && !text.empty())
		text += "; " + common::FormatDuration(waited_ns - known_ns) +
			" of the wait are unattributed, because no CPU slice of them was recorded";
	return text;
}

std::string CpuHolderName(const std::string &name, const std::set<uint32_t> &tids)
{
	return name + " (" +
	       (tids.size() > 1 ? common::Plural(tids.size(), "thread", "threads")
				: std::to_string(*tids.begin())) +
	       ")";
}

// Each sample is weighted with its sampling period, because long iterations are sampled more often. A
// thread's samples are sorted by time, so an interval's samples are found by bisection. The most frequent
// stack represents an activity.

// The period in recordings without a period per sample: 1 ms, in sixteenths of a millisecond.
constexpr double kOldPeriod = 16;

double ActivityTime::error() const
{
	return samples ? 1 / std::sqrt(static_cast<double>(samples)) : 1;
}

void OwnCodeCount::Add(const Thread &thread, uint64_t from_ns, uint64_t to_ns)
{
	// A program may be started by a link: Debian's redis-server is one to redis-check-rdb.
	const auto main = std::ranges::find_if(run_.threads, [&](const Thread &t) {
		return t.tid == thread.tgid && t.tgid == thread.tgid && !t.comm.empty();
	});
	const std::string process = main == run_.threads.end() ? "" : main->comm;
	const ft_cpu_sample *first = run_.cpu_samples.data() + thread.first_cpu_sample;
	const ft_cpu_sample *end = first + thread.cpu_sample_count;
	const ft_cpu_sample *s =
	    std::partition_point(first, end, [&](const ft_cpu_sample &x) { return x.t_ns < from_ns; });
	for (; s < end && s->t_ns < to_ns; s++) {
		if (s->owner != FT_OWN_CODE)
			continue;
		const Activity &activity = activities_.Of(static_cast<size_t>(s - run_.cpu_samples.data()));
		const bool own = !process.empty() && activity.name.starts_with("module/") &&
				 activity.name.substr(7) == run_.stacks[s->stack].program;
		ActivityCount &count = counts_[own ? "module/" + process : activity.name];
		count.samples++;
		count.weight += s->period ? s->period : kOldPeriod;
		count.lua_samples += activity.in_lua;
		count.kernel_samples += activity.in_kernel;
		count.transaction_samples += activity.in_transaction;
		count.stacks[activity.where]++;
	}
}

void OwnCodeCount::Add(const OwnCodeCount &other)
{
	for (const auto &[name, more] : other.counts_) {
		ActivityCount &count = counts_[name];
		count.samples += more.samples;
		count.lua_samples += more.lua_samples;
		count.kernel_samples += more.kernel_samples;
		count.transaction_samples += more.transaction_samples;
		count.weight += more.weight;
		for (const auto &[stack, samples] : more.stacks)
			count.stacks[stack] += samples;
	}
}

OwnCode OwnCodeCount::Result(uint64_t own_ns) const
{
	OwnCode result;
	double weight = 0;
	for (const auto &[name, count] : counts_) {
		result.samples += count.samples;
		result.transaction_samples += count.transaction_samples;
		weight += count.weight;
	}
	for (const auto &[name, count] : counts_) {
		auto most =
		    std::max_element(count.stacks.begin(), count.stacks.end(),
				     [](const auto &a, const auto &b) { return a.second < b.second; });
		double share = count.weight / weight;
		result.activities.push_back(
		    {name, count.samples, count.lua_samples, count.kernel_samples, share,
		     static_cast<uint64_t>(share * static_cast<double>(own_ns)), most->first});
	}
	std::stable_sort(result.activities.begin(), result.activities.end(),
			 [](const ActivityTime &a, const ActivityTime &b) { return a.share > b.share; });
	return result;
}

// The recorder reads the peer when the wait ends, and the program's stack when it begins.

namespace
{

constexpr size_t kCallers = 4; // printed of a stack

const ft_span *LongestOf(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.Total(cause);
	return total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
}

// "poll < anetResolve < connectWithMaster": the function that waited and the program's own that called it,
// innermost first, else the libraries'; "" if the stack is unknown.
std::string CallersText(const Scene &scene, const ft_span &s)
{
	const Run &run = scene.run;
	const ft_cpu_sample *first = run.cpu_samples.data() + scene.thread.first_cpu_sample,
			    *end = first + scene.thread.cpu_sample_count;
	const ft_cpu_sample *sample =
	    std::partition_point(first, end, [&](const ft_cpu_sample &x) { return x.t_ns < s.start_ns; });
	if (sample == end || sample->t_ns != s.start_ns || sample->owner != FT_PEER_WAIT || !sample->stack ||
	    sample->stack >= run.stacks.size())
		return "";
	const Stack &stack = run.stacks[sample->stack];
	const bool has_own = std::any_of(stack.frames.begin(), stack.frames.end(), [&](const StackFrame &f) {
		return !f.function.empty() && f.module == stack.program;
	});
	std::vector<std::string> names;
	for (const StackFrame &frame : stack.frames)
		if (!frame.function.empty() && (names.empty() || !has_own || frame.module == stack.program))
			names.push_back(frame.function);
	// Of libraries alone (the recorded stack ends before the program) the outermost tell most.
	if (names.size() > kCallers)
		names.erase(has_own ? names.begin() + kCallers : names.begin() + 1,
			    has_own ? names.end() : names.end() - (kCallers - 1));
	std::string text;
	for (const std::string &name : names)
		text += (text.empty() ? "" : " < ") + name;
	return text;
}

// " for an answer from 127.0.0.1:53 (udp)"; "" for an unknown peer.
std::string PeerText(const Scene &scene, const ft_span &s)
{
	const std::string peer = NameOf(scene.run, s);
	const bool sends = SyscallText(scene, s.syscall).find("send") != std::string::npos;
	return peer.empty() ? "" : (sends ? " to send to " : " for an answer from ") + peer;
}

const ft_span *IterationOf(const Scene &scene, const ft_span &s)
{
	const ft_span *first = scene.run.iterations.data() + scene.thread.first_iteration,
		      *end = first + scene.thread.iteration_count;
	const ft_span *after =
	    std::partition_point(first, end, [&](const ft_span &i) { return i.start_ns <= s.start_ns; });
	return after == first || SpanEnd(after[-1]) < SpanEnd(s) ? nullptr : after - 1;
}

std::string Doing(const Scene &scene, Cause cause)
{
	if (cause == Cause::ServerBusy)
		return "ran its own code for \1";
	if (cause == Cause::RunQueue)
		return "waited \1 for a CPU";
	return StallPhrase(scene, cause, "\1");
}

} // namespace

std::optional<StalledTarget> StalledTargetIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	std::optional<StalledTarget> longest;
	if (!scene.threads || to_ns <= from_ns)
		return longest;
	const Run &run = scene.run;
	for (uint32_t i = 0; i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		if (!(t.flags & FT_THREAD_MAIN) || t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT) ||
		    t.tgid == scene.thread.tgid || t.start_ns > from_ns || t.end_ns < from_ns)
			continue;
		CauseTimes times = {};
		AddTimes(scene.threads->Of(i), from_ns, to_ns, &times);
		for (int c = 0; c < kTimelineCauses; c++) {
			const Cause cause = static_cast<Cause>(c);
			const uint64_t ns = times[static_cast<size_t>(c)];
			if (cause == Cause::Idle || cause == Cause::Unknown || cause == Cause::Network ||
			    ns * 2 < to_ns - from_ns || (longest && longest->ns >= ns))
				continue;
			const Scene theirs = {run, scene.threads->Of(i), t, scene.landmarks, from_ns, to_ns};
			longest = {NameOfThread(run, t) + " " + Doing(theirs, cause), ns, t.tgid};
		}
	}
	return longest;
}

std::string StalledTarget::Sentence() const
{
	std::string sentence = text;
	return sentence.replace(sentence.find('\1'), 1, common::FormatDuration(ns));
}

std::string StalledTargetText(const Scene &scene, Cause waited)
{
	const ft_span *s = LongestOf(scene, waited);
	const auto target = s ? StalledTargetIn(scene, std::max(s->start_ns, scene.from_ns),
						std::min(SpanEnd(*s), scene.to_ns))
			      : std::nullopt;
	return target ? "; " + target->Sentence() + " meanwhile" : "";
}

std::string PeerSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::PeerWait);
	const ft_span *s = LongestOf(scene, Cause::PeerWait);
	if (!s)
		return "short waits for peers inside event-loop iterations took " +
		       common::FormatDuration(static_cast<uint64_t>(total.tallied_ns));
	std::string text = "waited " + common::FormatDuration(total.ns) + " in " +
			   SyscallText(scene, s->syscall) + PeerText(scene, *s) + ", inside ";
	const ft_span *iteration = IterationOf(scene, *s);
	text += iteration ? "an event-loop iteration of " + common::FormatDuration(iteration->duration_ns)
			  : "an event-loop iteration";
	if (total.spans > 1)
		text += " (" + common::FormatCount(total.spans) + " waits, the longest " +
			common::FormatDuration(total.longest_ns) + ")";
	if (const std::string callers = CallersText(scene, *s); !callers.empty())
		text += "; called by " + callers;
	return text + StalledTargetText(scene, Cause::PeerWait);
}

std::string PeerMeanwhile(const Scene &scene)
{
	const ft_span *s = LongestOf(scene, Cause::PeerWait);
	const auto target = s ? StalledTargetIn(scene, s->start_ns, SpanEnd(*s)) : std::nullopt;
	if (!target)
		return "";
	std::string peer = NameOf(scene.run, *s);
	peer = peer.substr(0, peer.find(' '));
	const std::string port = "tcp:" + peer.substr(peer.rfind(':') + 1);
	for (const Target &t : scene.run.targets)
		if (t.pid == target->pid && std::ranges::find(t.listens, port) != t.listens.end())
			return "Meanwhile " + target->Sentence() + ".";
	return "";
}

std::string PeerClause(const Scene &scene)
{
	const ft_span *s = LongestOf(scene, Cause::PeerWait);
	const std::string what =
	    s ? " in " + SyscallText(scene, s->syscall) + PeerText(scene, *s) : std::string(" for peers");
	return NameOfThread(scene.run, scene.thread) + " waited \1" + what + ", inside event-loop iterations";
}

} // namespace forktail::analysis
