// SPDX-License-Identifier: MIT
// Which remedies of the table (remedies.def) fit what was recorded. A condition holds only if what it asks
// for was seen: a setting that is not in the recording makes no advice.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "analysis/explain.h"
#include "common/format.h"
#include "common/json.h"
#include "scene.h"

namespace forktail::analysis
{

namespace
{

using Seen = std::optional<std::string>;

// A value that takes at least this long to free has many elements. Small values are freed at once, whatever
// lazyfree-* says.
constexpr uint64_t kLargeValueNs = 100'000;
// A call of a command that is long enough to delay others.
constexpr uint64_t kLongCallNs = 1'000'000;

// A cause that the answer names, and what is known about it.
struct Case {
	const Explanation &e;
	Cause cause;
	const Culprit &culprit;

	// What has most of the cause's time is one of these.
	bool Is(std::initializer_list<const char *> subjects) const
	{
		return std::ranges::find(subjects, culprit.subject) != subjects.end();
	}
	bool IsCommand(std::initializer_list<const char *> names) const
	{
		return std::ranges::any_of(names, [&](const char *name) {
			return culprit.subject == std::string("command/") + name;
		});
	}
	bool IsChild() const { return Is({"snapshot child", "AOF rewrite child", "replica sync child"}); }
	// What the load generator asked a server is known to be of the one that the cause is of.
	bool OneServer() const
	{
		std::set<uint32_t> processes;
		for (const int t : e.serving)
			if (t >= 0)
				processes.insert(e.run.threads[static_cast<size_t>(t)].tgid);
		return e.run.servers.size() <= 1 && processes.size() <= 1;
	}
	// A setting of the only server; nothing if the recording does not have it, or it changed meanwhile.
	Seen Setting(const std::string &name) const
	{
		const auto found = e.run.info.redis_config.find(name);
		if (!OneServer() || e.run.info.changed_settings.contains(name))
			return {};
		return found == e.run.info.redis_config.end() ? Seen() : found->second;
	}
	bool IsSet(const std::string &name, const std::string &value) const { return Setting(name) == value; }
	// How often clients called the command without an error, by the server's counters; nothing: not
	// known.
	std::optional<uint64_t> Calls(const std::string &command) const
	{
		if (!e.server_commands || !OneServer())
			return {};
		for (const ServerCommand &one : e.server_commands->commands)
			if (one.name == command)
				return one.calls - std::min(one.calls, one.failed);
		return 0;
	}
	// A stretch in which the cause delayed requests overlaps this one.
	bool Delayed(uint64_t from_ns, uint64_t to_ns) const
	{
		return std::ranges::any_of(e.episodes, [&](const Episode &episode) {
			return episode.since_ns < to_ns && episode.end_ns > from_ns &&
			       std::ranges::any_of(episode.causes, [&](const EpisodeCause &one) {
				       return one.cause == cause;
			       });
		});
	}
	// The longest call of one of these commands that the slow log has of that time; nothing: none.
	std::optional<SlowEntry> LongestCall(std::initializer_list<const char *> names) const
	{
		std::optional<SlowEntry> longest;
		for (const ServerReport &report : e.run.reports) {
			if (report.kind != "slowlog" || !OneServer())
				continue;
			const SlowEntry call = SlowEntryOf(report);
			const uint64_t before_ns = call.duration_ns + call.error_ns;
			if (std::ranges::find(names, call.command) != names.end() &&
			    Delayed(call.t_ns - std::min(call.t_ns, before_ns), call.t_ns + call.error_ns) &&
			    (!longest || call.duration_ns > longest->duration_ns))
				longest = call;
		}
		return longest;
	}
	// The server's counters have all children of this command that the answer may speak of.
	bool CountsCover(const std::string &command) const
	{
		const TimeSpan counted = CommandCountsSpan(e.run);
		return std::ranges::none_of(e.snapshots.all, [&](const Snapshot &one) {
			return one.command == command &&
			       (one.start_ns < counted.since_ns || one.start_ns > counted.until_ns);
		});
	}
	// Of the recorder's manifest: "always". "": not recorded.
	std::string HostFact(const char *name) const
	{
		for (const RecordingFile &f : e.run.files)
			if (f.program == "forktail-record")
				return common::Text(common::ParseVisibleObject(f.manifest), name);
		return "";
	}
};

constexpr size_t kSettingBytes = 60;

std::string Quoted(const std::string &value)
{
	return "'" + common::Cut(value, kSettingBytes) + "'";
}

Seen SavePoint(const Case &c)
{
	const TimeSpan whole = {c.e.run.start_ns, c.e.run.end_ns};
	const Seen points = c.Setting("save");
	if (!c.Is({"BGSAVE"}) || !points || points->empty() || c.Calls("bgsave") != 0 ||
	    !c.CountsCover("BGSAVE") || InfoGrowth(c.e.run, "sync_full", whole) != 0)
		return {};
	return "save is " + Quoted(*points) + " and no client sent BGSAVE";
}

// Clients' calls are as many as the snapshots: none of these began by a save point. Both are of the whole
// load.
Seen BgsaveCalls(const Case &c)
{
	const auto calls = c.Calls("bgsave");
	const TimeSpan counted = CommandCountsSpan(c.e.run);
	const bool recorded = std::ranges::any_of(c.e.run.files, [&](const RecordingFile &f) {
		return f.program == "forktail-record" && f.start_ns <= counted.since_ns &&
		       (!f.end_ns || f.end_ns >= counted.until_ns);
	});
	const auto children = std::ranges::count_if(c.e.run.threads, [&](const Thread &t) {
		return (t.flags & FT_THREAD_CHILD) && (t.flags & FT_THREAD_MAIN) &&
		       t.role == "snapshot child" && t.end_ns > counted.since_ns;
	});
	if (!c.Is({"BGSAVE"}) || !calls || !*calls || !recorded || !c.CountsCover("BGSAVE") ||
	    *calls < static_cast<uint64_t>(children))
		return {};
	return "clients sent it " + (*calls == 1 ? "once" : common::FormatCount(*calls) + " times");
}

Seen AutomaticRewrite(const Case &c)
{
	const Seen percentage = c.Setting("auto-aof-rewrite-percentage");
	if (!c.Is({"BGREWRITEAOF"}) || !percentage || *percentage == "0" || !c.IsSet("appendonly", "yes") ||
	    c.Calls("bgrewriteaof") != 0 || !c.CountsCover("BGREWRITEAOF"))
		return {};
	return "auto-aof-rewrite-percentage is " + *percentage + " and no client sent BGREWRITEAOF";
}

// The hard limit of replicas in bytes: "normal 0 0 0 slave 268435456 67108864 60".
std::optional<uint64_t> ReplicaLimit(const std::string &limits)
{
	std::istringstream words(limits);
	std::string name;
	for (uint64_t hard = 0, soft = 0, seconds = 0; words >> name >> hard >> soft >> seconds;)
		if (name == "slave" || name == "replica")
			return hard;
	return {};
}

Seen DroppedReplica(const Case &c)
{
	constexpr uint64_t advised = 1 << 30;
	const auto limit = ReplicaLimit(c.Setting("client-output-buffer-limit").value_or(""));
	if (!limit || *limit >= advised ||
	    c.culprit.subject.find("client_output_buffer_limit_disconnections") == std::string::npos)
		return {};
	return "INFO counted a client dropped at its output buffer's limit, and then a full synchronization; "
	       "that of "
	       "replicas is " +
	       common::FormatBytes(*limit);
}

Seen FsyncAlways(const Case &c)
{
	const std::string &file = c.culprit.subject;
	if (!c.IsSet("appendfsync", "always") || !c.IsSet("appendonly", "yes") ||
	    file.find(".aof") == std::string::npos || file.find(".manifest") != std::string::npos)
		return {};
	return "appendfsync is always";
}

Seen FsyncOnRewrite(const Case &c)
{
	const bool child = std::ranges::any_of(
	    c.e.snapshots.all, [&](const Snapshot &one) { return c.Delayed(one.start_ns, one.end_ns); });
	if (!child || !c.culprit.behind_fsync || c.culprit.subject.find(".aof") == std::string::npos ||
	    !c.IsSet("no-appendfsync-on-rewrite", "no") || !c.IsSet("appendfsync", "everysec"))
		return {};
	return "no-appendfsync-on-rewrite is no, and a child wrote too";
}

Seen FullGroup(const Case &c)
{
	uint64_t at_ns = 0;
	for (const Episode &episode : c.e.episodes)
		for (const EpisodeCause &cause : episode.causes)
			if (cause.cause == c.cause && !at_ns)
				at_ns = episode.end_ns;
	const std::string group = at_ns ? FullCgroup(c.e.run, at_ns) : "";
	return group.empty() ? Seen() : "cgroup " + group + " reached its limit";
}

Seen SynchronousCompaction(const Case &c)
{
	if (c.HostFact("thp") != "always" || c.HostFact("thp_defrag") != "always" ||
	    !c.IsSet("disable-thp", "no"))
		return {};
	return "huge pages and their defrag are always on, and disable-thp is no";
}

Seen InSwap(const Case &c)
{
	constexpr uint64_t before_ns = 1'000'000'000, after_ns = 1; // a sample is of the time before it
	for (const Series &s : c.e.run.series)
		if (s.name == "host.swap_in" && std::ranges::any_of(s.samples, [&](const Sample &sample) {
			    return sample.value > 0 &&
				   c.Delayed(sample.t_ns - std::min(sample.t_ns, before_ns),
					     sample.t_ns + after_ns);
		    }))
			return "the host read pages from swap";
	return {};
}

Seen ChildHeld(const Case &c)
{
	if (!c.IsChild() || c.e.run.cpus < 2)
		return {};
	const std::string setting = c.Is({"AOF rewrite child"}) ? "aof_rewrite_cpulist" : "bgsave_cpulist";
	const Seen cpus = c.Setting(setting);
	if (!cpus)
		return "the " + c.culprit.subject + " held it";
	return setting + " is " + (cpus->empty() ? "empty" : Quoted(*cpus));
}

Seen IoThreadsHeld(const Case &c)
{
	if (!c.culprit.subject.starts_with("io_thd_"))
		return {};
	const Seen threads = c.Setting("io-threads");
	return threads ? "io-threads is " + *threads : c.culprit.subject + " held the server's CPU";
}

bool IsLoadGenerator(const std::string &name)
{
	return name == "load generator" || name.starts_with("forktail-load");
}

Seen LoadHeld(const Case &c)
{
	return IsLoadGenerator(c.culprit.subject) ? Seen("the load generator held the server's CPU") : Seen();
}

// Most kernel threads have a '/' in their names.
bool IsKernelThread(const std::string &name)
{
	constexpr std::string_view begins[] = {
	    "kswapd", "kcompactd", "khugepaged", "ksmd", "kthreadd", "khungtaskd", "rcu_",	 "btrfs-",
	    "irq",    "md",	   "dm",	 "loop", "xfs",	     "z_",	   "oom_reaper", "writeback"};
	return name.find('/') != std::string::npos ||
	       std::ranges::any_of(begins, [&](std::string_view begin) { return name.starts_with(begin); });
}

// Kernel threads and threads of the server itself are not moved.
Seen OtherHeld(const Case &c)
{
	const std::string &name = c.culprit.subject;
	if (name.empty() || name == "thread" || name.starts_with("io_thd_") || c.IsChild() ||
	    IsLoadGenerator(name) || c.e.run.cpus < 2)
		return {};
	const bool recorded = std::ranges::any_of(c.e.run.threads, [&](const Thread &t) {
		return t.announced && (t.comm == name || t.role == name);
	});
	return recorded || IsKernelThread(name) ? Seen() : name + " held the server's CPU";
}

// Several keys: their values may be small, of which a background thread frees none.
Seen LazyDel(const Case &c)
{
	const auto call = c.LongestCall({"DEL"});
	if (!c.IsCommand({"DEL"}) || !c.IsSet("lazyfree-lazy-user-del", "no") || !call || !call->arguments ||
	    call->duration_ns / call->arguments < kLargeValueNs)
		return {};
	return "lazyfree-lazy-user-del is no";
}

// The setting is for calls without ASYNC or SYNC.
Seen LazyFlush(const Case &c)
{
	const auto call = c.LongestCall({"FLUSHALL", "FLUSHDB"});
	if (!c.IsCommand({"FLUSHALL", "FLUSHDB"}) || !c.IsSet("lazyfree-lazy-user-flush", "no") || !call ||
	    call->arguments)
		return {};
	return "lazyfree-lazy-user-flush is no";
}

// Many short calls are no large value.
Seen LongRead(const Case &c)
{
	const std::initializer_list<const char *> names = {"SMEMBERS", "HGETALL", "HKEYS", "HVALS"};
	const auto call = c.LongestCall(names);
	if (!c.IsCommand(names) || !call || call->duration_ns < kLongCallNs)
		return {};
	return "one call took " + common::FormatDuration(call->duration_ns);
}

Seen NagleHeld(const Case &c)
{
	const TcpFacts &tcp = c.e.tcp;
	if (!tcp.nagle_ns || tcp.nagle_ns * 2 < tcp.explained_ns() || tcp.explained_ns() * 2 < tcp.network_ns)
		return {};
	return "unsent data waited for the acknowledgment of earlier data";
}

// Conditions by a remedy's id. The other remedies are the reader's to judge.
const std::map<std::string, Seen (*)(const Case &)> kConditions = {
    {"save", SavePoint},
    {"bgsave", BgsaveCalls},
    {"rewrite-percentage", AutomaticRewrite},
    {"replica-buffer", DroppedReplica},
    {"appendfsync", FsyncAlways},
    {"fsync-on-rewrite", FsyncOnRewrite},
    {"memory-limit", FullGroup},
    {"thp", SynchronousCompaction},
    {"swapped", InSwap},
    {"tracer", [](const Case &c) { return c.culprit.clause.empty() ? Seen() : Seen(""); }},
    {"child-cpu", ChildHeld},
    {"io-threads", IoThreadsHeld},
    {"load-generator-cpu", LoadHeld},
    {"own-cpu", OtherHeld},
    {"quota", [](const Case &c) { return c.culprit.clause.empty() ? Seen() : Seen(""); }},
    {"lazyfree", LazyDel},
    {"lazy-flush", LazyFlush},
    {"lazy-replica-flush",
     [](const Case &c) {
	     return c.Is({"replica-flush"}) && c.IsSet("replica-lazy-flush", "no")
			? Seen("replica-lazy-flush is no")
			: Seen();
     }},
    {"scan", [](const Case &c) { return c.IsCommand({"KEYS"}) ? Seen("") : Seen(); }},
    {"value-scan", LongRead},
    {"connections", [](const Case &c) { return c.Is({"tls-handshake"}) ? Seen("") : Seen(); }},
    {"activedefrag",
     [](const Case &c) {
	     return c.Is({"defrag"}) && c.IsSet("activedefrag", "yes") ? Seen("activedefrag is yes") : Seen();
     }},
    {"load-cpu", [](const Case &c) { return c.Is({CauseName(Cause::RunQueue)}) ? Seen("") : Seen(); }},
    {"nodelay", NagleHeld},
};

} // namespace

std::vector<std::string> RemediesWithCondition()
{
	std::vector<std::string> ids;
	for (const auto &[id, condition] : kConditions)
		ids.push_back(id);
	return ids;
}

std::vector<Remedy> RemediesOf(const Explanation &e)
{
	std::vector<Remedy> remedies;
	if (e.lead.kind != Lead::Kind::Causes)
		return remedies;
	std::vector<Cause> causes = e.lead.causes;
	if (e.lead.late_first)
		causes.insert(causes.begin(), Cause::ClientLate);
	static const Culprit unknown;
	for (const Cause cause : causes) {
		const auto culprit = e.culprits.find(cause);
		const Case c = {e, cause, culprit == e.culprits.end() ? unknown : culprit->second};
		for (const RemedyInfo &info : kRemedyTable) {
			const auto condition = kConditions.find(info.id);
			if (condition == kConditions.end() || !info.IsFor(CauseName(cause)))
				continue;
			if (const Seen seen = condition->second(c))
				remedies.push_back({&info, cause, *seen,
						    e.blame.RowOf(cause).without.*e.lead.figure->value});
		}
	}
	return remedies;
}

} // namespace forktail::analysis
