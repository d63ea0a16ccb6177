// SPDX-License-Identifier: MIT
// Which remedies of the table (remedies.def) fit what was recorded. A condition holds only if what it asks
// for was seen: a setting that is not in the recording makes no advice.
#include <algorithm>
#include <map>
#include <optional>

#include "analysis/explain.h"
#include "common/format.h"
#include "common/json.h"

namespace forktail::analysis
{

namespace
{

using Seen = std::optional<std::string>;

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
	// A setting of the only server; nothing if the recording does not have it.
	Seen Setting(const std::string &name) const
	{
		const auto found = e.run.info.redis_config.find(name);
		if (e.run.servers.size() > 1)
			return {};
		return found == e.run.info.redis_config.end() ? Seen() : found->second;
	}
	bool IsSet(const std::string &name, const std::string &value) const { return Setting(name) == value; }
	// The server's own counters show that clients did not call the command; nothing: not known.
	std::optional<uint64_t> Calls(const std::string &command) const
	{
		if (!e.server_commands)
			return {};
		for (const ServerCommand &one : e.server_commands->commands)
			if (one.name == command)
				return one.calls;
		return 0;
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

Seen SavePoint(const Case &c)
{
	const TimeSpan whole = {c.e.run.start_ns, c.e.run.end_ns};
	const Seen points = c.Setting("save");
	if (!c.Is({"BGSAVE"}) || !points || points->empty() || c.Calls("bgsave") != 0 ||
	    InfoGrowth(c.e.run, "sync_full", whole) != 0)
		return {};
	return "save is '" + *points + "' and no client sent BGSAVE";
}

Seen BgsaveCalls(const Case &c)
{
	const auto calls = c.Calls("bgsave");
	if (!c.Is({"BGSAVE"}) || !calls || !*calls)
		return {};
	return "clients sent it " + (*calls == 1 ? "once" : common::FormatCount(*calls) + " times");
}

Seen AutomaticRewrite(const Case &c)
{
	const Seen percentage = c.Setting("auto-aof-rewrite-percentage");
	if (!c.Is({"BGREWRITEAOF"}) || !percentage || *percentage == "0" || c.Calls("bgrewriteaof") != 0)
		return {};
	return "auto-aof-rewrite-percentage is " + *percentage + " and no client sent BGREWRITEAOF";
}

Seen DroppedReplica(const Case &c)
{
	const Seen limit = c.Setting("client-output-buffer-limit");
	if (!limit ||
	    c.culprit.subject.find("client_output_buffer_limit_disconnections") == std::string::npos)
		return {};
	return "a replica was dropped at its limit";
}

Seen FsyncAlways(const Case &c)
{
	if (!c.IsSet("appendfsync", "always") || c.culprit.subject.find(".aof") == std::string::npos)
		return {};
	return "appendfsync is always";
}

Seen FsyncOnRewrite(const Case &c)
{
	if (!c.culprit.behind_fsync || c.culprit.subject.find(".aof") == std::string::npos ||
	    !c.IsSet("no-appendfsync-on-rewrite", "no") || !c.IsSet("appendfsync", "everysec") ||
	    c.e.snapshots.all.empty())
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
	if (c.HostFact("thp") != "always" || c.HostFact("thp_defrag") != "always")
		return {};
	return "huge pages and their defrag are always on";
}

Seen InSwap(const Case &c)
{
	for (const Series &s : c.e.run.series)
		if (s.name == "host.swap_in" &&
		    std::ranges::any_of(s.samples, [](const Sample &sample) { return sample.value > 0; }))
			return "the host read pages from swap";
	return {};
}

Seen ChildHeld(const Case &c)
{
	if (!c.IsChild() || c.e.run.cpus < 2)
		return {};
	const Seen cpus = c.Setting("bgsave_cpulist");
	return cpus && cpus->empty() ? "bgsave_cpulist is empty" : "the " + c.culprit.subject + " held it";
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
	return recorded || name.find('/') != std::string::npos ? Seen() : name + " held the server's CPU";
}

Seen Lazy(const Case &c, std::initializer_list<const char *> commands, const char *setting)
{
	return c.IsCommand(commands) && c.IsSet(setting, "no") ? std::string(setting) + " is no" : Seen();
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
    {"lazyfree", [](const Case &c) { return Lazy(c, {"DEL"}, "lazyfree-lazy-user-del"); }},
    {"lazy-flush",
     [](const Case &c) {
	     return Lazy(c, {"FLUSHALL", "FLUSHDB"}, "lazyfree-lazy-user-flush");
     }},
    {"lazy-replica-flush",
     [](const Case &c) {
	     return c.Is({"replica-flush"}) && c.Setting("replica-lazy-flush") != "yes" ? Seen("") : Seen();
     }},
    {"scan", [](const Case &c) { return c.IsCommand({"KEYS"}) ? Seen("") : Seen(); }},
    {"value-scan",
     [](const Case &c) {
	     return c.IsCommand({"SMEMBERS", "HGETALL", "HKEYS", "HVALS"}) ? Seen("") : Seen();
     }},
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
	static const Culprit nobody;
	for (const Cause cause : causes) {
		const auto culprit = e.culprits.find(cause);
		const Case c = {e, cause, culprit == e.culprits.end() ? nobody : culprit->second};
		for (const RemedyInfo &info : kRemedyTable) {
			const auto condition = kConditions.find(info.id);
			if (condition == kConditions.end() || !info.IsFor(CauseName(cause)))
				continue;
			if (const Seen seen = condition->second(c))
				remedies.push_back({&info, cause, *seen,
						    PercentileWithout(e.blame, *e.lead.figure, {cause})});
		}
	}
	return remedies;
}

} // namespace forktail::analysis
