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
	    {Cause::Fsync, " of nodes.conf", "appendfsync", "always", ""},
	    {Cause::RunQueue, "snapshot child", "save", "", "child-cpu"},
	    {Cause::RunQueue, "io_thd_1", "io-threads", "4", "io-threads"},
	    {Cause::RunQueue, "load generator", "save", "", "load-generator-cpu"},
	    {Cause::RunQueue, "stress-ng", "save", "", "own-cpu"},
	    {Cause::RunQueue, "kworker/0:1", "save", "", ""},
	    {Cause::RunQueue, "", "save", "", ""},
	    {Cause::CpuQuota, "", "save", "", "quota"},
	    {Cause::Fork, "BGSAVE", "save", "3600 1", ""}, // who began it is not known
	    {Cause::ClientLate, "run-queue", "save", "", "load-cpu"},
	    {Cause::Network, "", "save", "", ""},
	};
	for (const auto &c : cases) {
		Answered answered(c.cause, About(c.subject));
		answered.run.info.redis_config[c.setting] = c.value;
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

TEST_CASE("settings of several servers are nobody's")
{
	Answered answered(Cause::ServerBusy, About("command/DEL"));
	answered.run.info.redis_config["lazyfree-lazy-user-del"] = "no";
	answered.run.servers.push_back("127.0.0.1:6380");
	CHECK(answered.Ids().empty());
}

TEST_CASE("who called BGSAVE decides whose snapshots they are")
{
	Answered answered(Cause::CowCopy, About("BGSAVE"));
	answered.run.info.redis_config["save"] = "60 1000";
	answered.e.server_commands = ServerCommands();
	CHECK(answered.Ids().empty()); // perhaps for a replica: INFO is not known
	Series syncs;
	syncs.name = "redis.sync_full";
	syncs.samples = {{0, 0}, {10, 0}};
	answered.run.end_ns = 20;
	answered.run.series.push_back(syncs);
	CHECK(answered.Ids() == "save");
	answered.e.server_commands->commands.push_back({"bgsave", 2, 0, 0, 0, 0, 0, {}});
	CHECK(answered.Ids() == "bgsave");
}

TEST_CASE("a sentence has what to do, why, what it may lose, and how to measure it")
{
	Answered answered(Cause::Fsync, About(" of appendonly.aof.1.incr.aof"));
	answered.run.info.redis_config["appendfsync"] = "always";
	answered.e.blame.latencies.p99_9 = 0;
	CHECK(FirstRemedyText(answered.e)
		  .starts_with("What to do: let a background thread call fsync once a second (CONFIG SET "
			       "appendfsync everysec), "
			       "because appendfsync is always."));
	CHECK(FirstRemedyText(answered.e)
		  .ends_with(" A crash may then lose writes of a second. To measure it on this server: "
			     "forktail try 'config set "
			     "appendfsync everysec' --port 6379 --accept-data-loss."));
	answered.run.servers = {"10.0.0.7:6379"};
	CHECK(FirstRemedyText(answered.e).ends_with("writes of a second."));
	answered.e.lead.kind = Lead::Kind::None;
	CHECK(FirstRemedyText(answered.e).empty());
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
