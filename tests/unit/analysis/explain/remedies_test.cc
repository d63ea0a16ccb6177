// SPDX-License-Identifier: MIT
// A remedy is named only if what it depends on was recorded.
#include <algorithm>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/text.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::test;
using namespace forktail::analysis;

namespace
{

// An answer that names one cause, of which this is known.
struct Answered {
	Answered(Cause cause, const Culprit &culprit) : e(run)
	{
		run.cpus = 2;
		run.servers = {"127.0.0.1:6379"};
		e.lead.kind = Lead::Kind::Causes;
		e.lead.figure = &UsualFigure();
		e.lead.causes = {cause};
		e.culprits[cause] = culprit;
		Episode episode;
		episode.since_ns = 1000, episode.end_ns = 2000;
		episode.causes.emplace_back().cause = cause;
		e.episodes.push_back(episode);
	}
	// An entry of the slow log, in the episode.
	void AddSlow(const std::string &words, uint64_t us)
	{
		run.reports.push_back({1500, "slowlog", 0,
				       R"({"t_error_ns":10,"duration_us":)" + std::to_string(us) +
					   R"(,"command":[)" + words + "]}"});
	}
	std::string Ids() const
	{
		std::string ids;
		for (const Remedy &remedy : RemediesOf(e))
			ids += (ids.empty() ? "" : " ") + std::string(remedy.info->id);
		return ids;
	}

	Run run;
	Explanation e;
};

Culprit About(const std::string &subject)
{
	return {"it took 3 ms", "", subject, false};
}

} // namespace

TEST_CASE("a remedy's condition is a setting and what was seen")
{
	struct {
		Cause cause;
		const char *subject, *setting, *value, *ids;
	} cases[] = {
	    {Cause::ServerBusy, "command/DEL", "lazyfree-lazy-user-del", "no", "lazyfree"},
	    {Cause::ServerBusy, "command/DEL", "lazyfree-lazy-user-del", "yes", ""},
	    {Cause::ServerBusy, "command/DEL", "lazyfree-lazy-user-flush", "no", ""}, // not known
	    {Cause::ServerBusy, "command/GET", "lazyfree-lazy-user-del", "no", ""},
	    {Cause::ServerBusy, "command/FLUSHALL", "lazyfree-lazy-user-flush", "no", "lazy-flush"},
	    {Cause::ServerBusy, "command/KEYS", "save", "", "scan"},
	    {Cause::ServerBusy, "command/SMEMBERS", "save", "", "value-scan"},
	    {Cause::ServerBusy, "tls-handshake", "save", "", "connections"},
	    {Cause::ServerBusy, "defrag", "save", "", ""}, // memcached's slabs, perhaps
	    {Cause::ServerBusy, "defrag", "activedefrag", "yes", "activedefrag"},
	    {Cause::ServerBusy, "replica-flush", "replica-lazy-flush", "yes", ""},
	    {Cause::ServerBusy, "replica-flush", "replica-lazy-flush", "no", "lazy-replica-flush"},
	    {Cause::Fsync, " of appendonly.aof.1.incr.aof", "appendfsync", "always", "appendfsync"},
	    {Cause::Fsync, " of appendonly.aof.1.incr.aof", "appendfsync", "everysec", ""},
	    {Cause::Fsync, " of appendonly.aof.manifest", "appendfsync", "always", ""},
	    {Cause::Fsync, " of nodes.conf", "appendfsync", "always", ""},
	    {Cause::Fork, "INFO: client_output_buffer_limit_disconnections rose from 0 to 1",
	     "client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60", "replica-buffer"},
	    {Cause::Fork, "INFO: client_output_buffer_limit_disconnections rose from 0 to 1",
	     "client-output-buffer-limit", "normal 0 0 0 slave 4294967296 67108864 60", ""},
	    {Cause::RunQueue, "snapshot child", "save", "", "child-cpu"},
	    {Cause::RunQueue, "io_thd_1", "io-threads", "4", "io-threads"},
	    {Cause::RunQueue, "load generator", "save", "", "load-generator-cpu"},
	    {Cause::RunQueue, "stress-ng", "save", "", "own-cpu"},
	    {Cause::RunQueue, "kworker/0:1", "save", "", ""},
	    {Cause::RunQueue, "kswapd0", "save", "", ""},
	    {Cause::RunQueue, "", "save", "", ""},
	    {Cause::CpuQuota, "", "save", "", "quota"},
	    {Cause::Fork, "BGSAVE", "save", "3600 1", ""}, // who began it is not known
	    {Cause::ClientLate, "run-queue", "save", "", "load-cpu"},
	    {Cause::Network, "", "save", "", ""},
	};
	for (const auto &c : cases) {
		Answered answered(c.cause, About(c.subject));
		answered.run.info.redis_config[c.setting] = c.value;
		answered.run.info.redis_config["appendonly"] = "yes";
		const std::string subject = c.subject;
		if (const std::string command = "command/"; subject.starts_with(command))
			answered.AddSlow('"' + subject.substr(command.size()) + '"' +
					     (subject.ends_with("DEL") ? R"(,"big")" : ""),
					 20000);
		INFO(c.subject << ", " << c.setting << " " << c.value);
		CHECK(answered.Ids() == c.ids);
	}
}

TEST_CASE("a thread that was recorded is not another process")
{
	Answered answered(Cause::RunQueue, About("redis-server"));
	CHECK(answered.Ids() == "own-cpu");
	Thread thread;
	thread.comm = "redis-server";
	thread.announced = true;
	answered.run.threads.push_back(thread);
	CHECK(answered.Ids().empty());
	Answered only(Cause::RunQueue, About("stress-ng"));
	only.run.cpus = 1;
	CHECK(only.Ids().empty());
}

TEST_CASE("small values are freed at once, whatever is set")
{
	struct {
		const char *words;
		uint64_t us;
		const char *ids;
	} cases[] = {
	    {R"("DEL","big")", 20000, "lazyfree"},
	    {R"("del","big","other")", 20000, "lazyfree"},
	    {R"_("DEL","k:0","... (399970 more arguments)")_", 200000, ""},
	    {R"("DEL")", 20000, ""},
	    {R"("GET","big")", 20000, ""},
	};
	for (const auto &c : cases) {
		Answered answered(Cause::ServerBusy, About("command/DEL"));
		answered.run.info.redis_config["lazyfree-lazy-user-del"] = "no";
		INFO(c.words);
		answered.AddSlow(c.words, c.us);
		CHECK(answered.Ids() == c.ids);
		answered.run.reports[0].t_ns = 30'000'000'000; // of another time
		CHECK(answered.Ids().empty());
	}
}

TEST_CASE("a flush that says SYNC or ASYNC does not follow the setting")
{
	for (const std::string mode : {"", R"(,"SYNC")", R"(,"async")"}) {
		Answered answered(Cause::ServerBusy, About("command/FLUSHALL"));
		answered.run.info.redis_config["lazyfree-lazy-user-flush"] = "no";
		answered.AddSlow(R"("FLUSHALL")" + mode, 200000);
		INFO(mode);
		CHECK(answered.Ids() == (mode.empty() ? "lazy-flush" : ""));
	}
}

TEST_CASE("a large value takes one call long, many small ones do not")
{
	Answered answered(Cause::ServerBusy, About("command/HGETALL"));
	CHECK(answered.Ids().empty());
	answered.AddSlow(R"("HGETALL","big")", 15000);
	REQUIRE(answered.Ids() == "value-scan");
	CHECK(RemediesOf(answered.e)[0].seen == "one call took 15.0 ms");
}

TEST_CASE("a child has its own setting for its CPUs")
{
	for (const std::string child : {"snapshot child", "AOF rewrite child"}) {
		Answered answered(Cause::RunQueue, About(child));
		answered.run.info.redis_config = {{"bgsave_cpulist", "1"}, {"aof_rewrite_cpulist", ""}};
		CHECK(RemediesOf(answered.e)[0].seen ==
		      (child[0] == 's' ? "bgsave_cpulist is '1'" : "aof_rewrite_cpulist is empty"));
	}
}

TEST_CASE("a setting that changed meanwhile is not known")
{
	Answered answered(Cause::ServerBusy, About("command/DEL"));
	answered.run.info.redis_config["lazyfree-lazy-user-del"] = "no";
	answered.AddSlow(R"("DEL","big")", 20000);
	CHECK(answered.Ids() == "lazyfree");
	answered.run.info.changed_settings.insert("lazyfree-lazy-user-del");
	CHECK(answered.Ids().empty());
}

TEST_CASE("settings of one of several servers are not known of the others")
{
	Answered answered(Cause::ServerBusy, About("command/DEL"));
	answered.run.info.redis_config["lazyfree-lazy-user-del"] = "no";
	answered.AddSlow(R"("DEL","big")", 20000);
	CHECK(answered.Ids() == "lazyfree");
	for (const uint32_t process : {10, 20}) { // behind a proxy
		answered.e.serving.push_back(static_cast<int>(answered.run.threads.size()));
		answered.run.threads.emplace_back().tgid = process;
		CHECK(answered.Ids() == (process == 10 ? "lazyfree" : ""));
	}
	answered.e.serving.clear();
	answered.run.servers.push_back("127.0.0.1:6380");
	CHECK(answered.Ids().empty());
}

namespace
{

// A snapshot that delayed requests, on a server with save points whose counters were read at 100 and at 5000.
struct Snapshotted : Answered {
	explicit Snapshotted(uint64_t start_ns = 1000) : Answered(Cause::CowCopy, About("BGSAVE"))
	{
		run.info.redis_config["save"] = "60 1000";
		run.end_ns = 6000;
		for (const uint64_t t_ns : {100, 5000})
			run.reports.push_back({t_ns, "command-stats", 0, R"({"run_id":"a"})"});
		Series syncs;
		syncs.name = "redis.sync_full";
		syncs.samples = {{0, 0}, {10, 0}};
		run.series.push_back(syncs);
		RecordingFile file;
		file.program = "forktail-record";
		file.end_ns = run.end_ns;
		run.files.push_back(file);
		e.server_commands = ServerCommands();
		AddChild(start_ns);
	}
	void AddChild(uint64_t start_ns)
	{
		Thread child;
		child.role = "snapshot child";
		child.flags = FT_THREAD_CHILD | FT_THREAD_MAIN;
		child.start_ns = start_ns, child.end_ns = start_ns + 100;
		run.threads.push_back(child);
		Snapshot snapshot;
		snapshot.command = "BGSAVE";
		snapshot.start_ns = start_ns, snapshot.end_ns = start_ns + 100;
		e.snapshots.all.push_back(snapshot);
	}
	void Called(uint64_t calls, uint64_t failed)
	{
		e.server_commands->commands = {{"bgsave", calls, 0, failed, 0, 0, 0, {}}};
	}
};

} // namespace

TEST_CASE("who called BGSAVE decides whose snapshots they are")
{
	Snapshotted one;
	CHECK(one.Ids() == "save");
	one.Called(1, 1); // refused
	CHECK(one.Ids() == "save");
	one.Called(2, 1);
	CHECK(one.Ids() == "bgsave");
	CHECK(RemediesOf(one.e)[0].seen == "clients sent it once");
	one.AddChild(3000); // of one of both it is not known
	CHECK(one.Ids().empty());
	one.Called(2, 0);
	CHECK(one.Ids() == "bgsave");
	one.run.files[0].start_ns = 200; // an earlier one may not have been recorded
	CHECK(one.Ids().empty());

	Snapshotted before(50); // who began it was not counted
	CHECK(before.Ids().empty());
	Snapshotted replicas; // perhaps for a replica: INFO is not known
	replicas.run.series.clear();
	CHECK(replicas.Ids().empty());
	Snapshotted many;
	many.run.info.redis_config["save"] = std::string(500, '1');
	CHECK(RemediesOf(many.e)[0].seen.size() < 120);
}

TEST_CASE("a sentence has what to do, why, what it may lose, and how to measure it")
{
	Answered answered(Cause::Fsync, About(" of appendonly.aof.1.incr.aof"));
	answered.run.info.redis_config = {{"appendfsync", "always"}, {"appendonly", "yes"}};
	answered.e.blame.latencies.p99_9 = 0;
	CHECK(RemedyText(answered.e)
		  .starts_with("What to do: let a background thread call fsync once a second (CONFIG SET "
			       "appendfsync everysec), "
			       "because appendfsync is always."));
	CHECK(RemedyText(answered.e)
		  .ends_with(" A crash may then lose writes of a second. To measure it on this server: "
			     "forktail try 'config set "
			     "appendfsync everysec' --port 6379 --accept-data-loss."));
	CHECK(RemedyLines(answered.e, 3, 60)
		  .ends_with("server:\n   forktail try 'config set appendfsync everysec' --port 6379 "
			     "--accept-data-loss\n"));
	answered.run.servers = {"unix:/run/redis-1.sock"};
	CHECK(RemedyText(answered.e).ends_with(" --unix /run/redis-1.sock --accept-data-loss."));
	for (const char *path : {"unix:/run/my redis.sock", "unix:/run/$(x)", "unix:/run/a'b",
				 "unix:/run/a\\x0a", "unix:/run/\xc3\xa4"}) {
		answered.run.servers = {path};
		CHECK(RemedyText(answered.e).ends_with("writes of a second."));
	}
	answered.run.servers = {"10.0.0.7:6379"};
	CHECK(RemedyText(answered.e).ends_with("writes of a second."));
	answered.e.lead.kind = Lead::Kind::None;
	CHECK(RemedyText(answered.e).empty());
}

TEST_CASE("each condition is of a row of the table, which has it in words")
{
	for (const std::string &id : RemediesWithCondition()) {
		INFO(id);
		const auto row = std::ranges::find(kRemedyTable, id, &RemedyInfo::id);
		REQUIRE(row != std::end(kRemedyTable));
		CHECK(*row->when);
	}
}
