// SPDX-License-Identifier: MIT
// What the server counted of each command is the growth of its counters between the first and the last note
// of the same process.
#include "analysis/explain.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::test;
using namespace forktail::analysis;

namespace
{

void Note(RunBuilder *b, uint64_t t, const char *kind, const std::string &run_id, const std::string &commands)
{
	ServerReport report;
	report.t_ns = kBase + t;
	report.kind = kind;
	report.text = R"({"run_id":")" + run_id + R"(","commands":[)" + commands + "]}";
	b->run.reports.push_back(report);
}

std::string Stats(const std::string &name, uint64_t calls, uint64_t usec, uint64_t rejected = 0,
		  uint64_t failed = 0)
{
	return R"({"name":")" + name + R"(","calls":)" + std::to_string(calls) + R"(,"usec":)" +
	       std::to_string(usec) + R"(,"rejected_calls":)" + std::to_string(rejected) +
	       R"(,"failed_calls":)" + std::to_string(failed) + "}";
}

std::string Latency(const std::string &name, uint64_t calls, const std::string &slots)
{
	return R"({"name":")" + name + R"(","calls":)" + std::to_string(calls) + R"(,"slots":[)" + slots +
	       "]}";
}

OperationCounts CountOf(const Run &run)
{
	WholeLog log(run);
	return CountRequests(run, &log, CommandCountsSpan(run)).by_op;
}

} // namespace

TEST_CASE("commands are counted between two readings of one process, by time")
{
	RunBuilder b;
	b.run.ops = {"READ", "SET", "UPDATE"};
	b.run.op_commands = {"GET", "SET", "SET"};
	// An earlier process is not compared with this one.
	Note(&b, 0, "command-stats", "a", Stats("get", 1, 1));
	Note(&b, 10 * ms, "command-stats", "b", Stats("get", 100, 500) + "," + Stats("old", 7, 70));
	Note(&b, 500 * ms, "command-stats", "b", Stats("get", 101, 501));
	Note(&b, 900 * ms, "command-stats", "b",
	     Stats("get", 105, 530, 2) + "," + Stats("old", 7, 70) + "," + Stats("set", 4, 90, 0, 1) + "," +
		 Stats("config|get", 1, 3));
	b.Request(0, 0, 10 * ms, 0, 0); // answered before the first reading
	for (uint64_t t : {20, 30, 40})
		b.Request(t * ms, t * ms, (t + 1) * ms, 0, 0);
	b.Request(50 * ms, 50 * ms, 51 * ms, 0, 0, FT_STATUS_MISS);
	b.Request(60 * ms, 60 * ms, 61 * ms, 0, 0, FT_STATUS_ERROR_REPLY);
	b.Request(70 * ms, 70 * ms, 71 * ms, 0, 0, FT_STATUS_TIMEOUT); // perhaps never executed
	b.Request(80 * ms, 80 * ms, 81 * ms, 0, 1);
	b.Request(90 * ms, 90 * ms, 900 * ms, 0, 2);
	b.Request(95 * ms, 95 * ms, 901 * ms, 0, 2); // answered after the last reading
	const auto counted = ServerCommandsOf(b.run, CountOf(b.run));
	REQUIRE(counted);
	CHECK(counted->ns == 890 * ms);
	REQUIRE(counted->commands.size() == 3);
	const ServerCommand &set = counted->commands[0], &get = counted->commands[1],
			    &config = counted->commands[2];
	CHECK(set.name == "set");
	CHECK(set.calls == 4);
	CHECK(set.failed == 1);
	CHECK(set.time_ns == 90 * us);
	CHECK(set.MeanNs() == 22'500);
	CHECK(set.logged->requests == 2);
	CHECK(set.Difference() == 2);
	CHECK(get.name == "get");
	CHECK(get.calls == 5);
	CHECK(get.rejected == 2);
	CHECK(get.time_ns == 30 * us);
	CHECK(get.logged->requests == 5);
	CHECK(get.Difference() == 2);
	CHECK(get.logged->served == 0);
	CHECK(config.name == "config|get");
	CHECK(!config.logged);
	CHECK(config.p99_ns == 0);
	SECTION("a log of only slow requests does not have their number")
	{
		b.Loop("closed");
		b.run.loads[0].only_slow = true;
		CHECK(!ServerCommandsOf(b.run, CountOf(b.run))->commands[0].logged);
	}
	SECTION("a command whose counters were reset is left out")
	{
		Note(&b, 950 * ms, "command-stats", "b", Stats("get", 3, 9) + "," + Stats("set", 9, 90));
		const auto after = ServerCommandsOf(b.run, CountOf(b.run));
		REQUIRE(after->commands.size() == 1);
		CHECK(after->commands[0].name == "set");
	}
	SECTION("the server was restarted before the last reading")
	{
		Note(&b, 950 * ms, "command-stats", "c", Stats("get", 300, 900));
		CHECK(!ServerCommandsOf(b.run, CountOf(b.run)));
		CHECK(CommandCountsSpan(b.run).until_ns == 0);
	}
}

TEST_CASE("service times are those that the server's kernel saw")
{
	RunBuilder b;
	b.run.op_commands = b.run.ops;
	Note(&b, 0, "command-stats", "a", "");
	Note(&b, 900 * ms, "command-stats", "a", Stats("get", 3, 30));
	for (uint64_t t : {10, 20, 30})
		b.Request(t * ms, t * ms, (t + 5) * ms);
	b.run.requests.read_ns = {};
	b.run.requests.answered_ns = {};
	for (uint64_t t : {10, 0, 30}) // the second read was not seen
		b.run.requests.read_ns.push_back(t ? kBase + (t + 1) * ms : 0);
	for (uint64_t t : {10, 20, 30})
		b.run.requests.answered_ns.push_back(kBase + (t + 3) * ms);
	const auto counted = ServerCommandsOf(b.run, CountOf(b.run));
	REQUIRE(counted);
	CHECK(counted->commands[0].logged->requests == 3);
	CHECK(counted->commands[0].logged->served == 2);
	CHECK(counted->commands[0].logged->service_ns == 4 * ms);
	CHECK(counted->commands[0].Difference() == 0);
}

TEST_CASE("percentiles are upper bounds from the growth of the server's histograms")
{
	RunBuilder b;
	Note(&b, 0, "command-stats", "a", Stats("get", 100, 100));
	Note(&b, 900 * ms, "command-stats", "a", Stats("get", 300, 900) + "," + Stats("set", 1, 1));
	// Slots are left out if they have no calls.
	Note(&b, 1 * ms, "command-latency", "a", Latency("get", 100, "[1,90],[16,100]"));
	Note(&b, 901 * ms, "command-latency", "a",
	     Latency("get", 300, "[1,90],[2,191],[16,296],[2113,300]") + "," + Latency("set", 1, "[33,1]"));
	const auto counted = ServerCommandsOf(b.run, {});
	REQUIRE(counted);
	REQUIRE(counted->commands.size() == 2);
	CHECK(counted->commands[0].p50_ns == 2 * us);	 // 101 of 200 calls
	CHECK(counted->commands[0].p99_ns == 2113 * us); // 196 of 200 took up to 16 us
	CHECK(counted->commands[1].p50_ns == 33 * us);
	b.run.reports.pop_back(); // only one reading
	CHECK(ServerCommandsOf(b.run, {})->commands[0].p50_ns == 0);
}
