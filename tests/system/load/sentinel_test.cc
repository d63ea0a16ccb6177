// SPDX-License-Identifier: MIT
// Load on a primary monitored by real Sentinels: found, followed through a failover, its replicas read and
// waited for. Also Sentinels that do not help.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/sentinel.h"
#include "tests/system/load/clock.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

Arguments on(Sentinels &s, const Arguments &more)
{
	Arguments all = {"--sentinel", s.sentinel_address(0), "--sentinel", s.sentinel_address(1),
			 "--master",   Sentinels::name,	      "-q",	    "--no-observer"};
	all.insert(all.end(), more.begin(), more.end());
	return all;
}

Json only_run(const std::string &path)
{
	const Json json = parse_json(read_file(path));
	REQUIRE(json["runs"].size() == 1);
	return json["runs"][0];
}

} // namespace

TEST_CASE("the primary that Sentinels name gets the load, replicas the reads if requested")
{
	Sentinels s;
	TempDir dir;
	Result r = load(on(s, {"--fill", "500", "-c", "2", "--json", dir.file("json")}));
	INFO(r.err);
	REQUIRE(r.status == 0);
	CHECK(s.primary().command({"DBSIZE"}) == "500");
	for (size_t i = 1; i < s.servers(); i++)
		REQUIRE(eventually([&] { return s.server(i).command({"DBSIZE"}) == "500"; }));

	r = load(on(s, {"--ratio", "1:4", "-r", "500", "-n", "4000", "-c", "2", "--read-from", "replica",
			"--json", dir.file("json")}));
	INFO(r.err);
	REQUIRE(r.status == 0);
	Json run = only_run(dir.file("json"));
	CHECK(run["total"]["errors"] == 0);
	CHECK(run["total"]["misses"] == 0);
	CHECK(run["nodes"].size() == 3);
	for (const Json &n : run["nodes"])
		if (n["server"] == s.address(0))
			CHECK(n["requests"] == run["operations"]["SET"]["requests"]);

	// Without Sentinel the primary's own information is enough.
	r = load({"--server", s.address(0), "-q", "--no-observer", "--ratio", "0:1", "-r", "500", "-n",
		  "1000", "-c", "2", "--read-from", "replica", "--json", dir.file("json")});
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json nodes = only_run(dir.file("json"))["nodes"];
	for (const Json &n : nodes)
		CHECK(n["server"] != s.address(0));
	r = load({"--server", s.address(1), "-q", "--no-observer", "-n", "10", "--read-from", "any"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "is a replica"));
}

TEST_CASE("the primary dies: the next one gets the load, and the gap is as long as Sentinel says")
{
	double off_s = 1e9;
	for (int attempt = 0; attempt < 3 && off_s > 0.1; attempt++) {
		Sentinels s(2, 2000);
		TempDir dir;
		Process run(load_command(on(s, {"--rate", "1000", "--duration", "14", "-r", "1000", "-c", "8",
						"-o", dir.file("log"), "--json", dir.file("json")})));
		REQUIRE(
		    eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(30)));
		sleep_for(Seconds(1));
		s.primary().process().signal(SIGKILL);
		const auto status = run.wait(Seconds(60));
		INFO(run.err());
		INFO(run.out());
		REQUIRE(status == 0);
		const Json figures = only_run(dir.file("json"));
		const Log log = read_log(dir.file("log"));
		CHECK(figures["total"]["requests"] == 14000);
		REQUIRE(figures["outages"].size() == 1);
		const Json &outage = figures["outages"][0];
		CHECK(outage["server"] == s.address(0));
		CHECK(outage["after"] != s.address(0));
		CHECK(outage["delayed"].get<uint64_t>() > 100);
		CHECK(outage["failed"] == figures["total"]["errors"]);
		CHECK(figures["total"]["errors"] == log.with_status(FT_STATUS_RESET));
		CHECK(contains(run.out(), "keys without a server for"));
		CHECK(std::any_of(log.notes.begin(), log.notes.end(), [&](const Json &n) {
			return n["kind"] == "topology" && n["what"] == "primary" &&
			       n["to"] == outage["after"];
		}));

		// The Sentinel that leads the failover names the new primary from "+promoted-slave" on, the
		// others from "+switch-master" on.
		double at_s = 1e9;
		for (size_t i = 0; i < 3; i++)
			for (const char *event : {"+promoted-slave", "+switch-master"})
				if (const size_t found = s.sentinel(i).log().find(event);
				    found != std::string::npos)
					at_s = std::min(at_s, seconds_of_day(s.sentinel(i).log(), found));
		REQUIRE(at_s < 1e9);
		REQUIRE(!log.clocks.empty());
		off_s = seconds_of_day(log.clocks.front(), outage["first_ok_ns"].get<uint64_t>()) - at_s;
		CHECK(off_s > -0.002);
		WARN("the first answer came " << off_s << " s after a Sentinel named the new primary");
	}
	CHECK(off_s <= 0.1);
}

TEST_CASE("a requested failover: requests that the old primary refuses as a replica go to the new one")
{
	Sentinels s;
	TempDir dir;
	Process run(load_command(on(s, {"--rate", "1000", "--duration", "10", "-r", "1000", "-c", "4", "-o",
					dir.file("log"), "--json", dir.file("json")})));
	REQUIRE(eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(30)));
	REQUIRE(eventually([&] {
		return s.sentinel(0).command({"SENTINEL", "FAILOVER", Sentinels::name}) == "OK";
	}));
	const auto status = run.wait(Seconds(60));
	INFO(run.err());
	INFO(run.out());
	REQUIRE(status == 0);
	const Json figures = only_run(dir.file("json"));
	CHECK(figures["total"]["requests"] == 10000);
	CHECK(figures["error_replies"].empty());
	uint64_t elsewhere = 0;
	for (const Json &n : figures["nodes"])
		if (n["server"] != s.address(0))
			elsewhere += n["requests"].get<uint64_t>();
	CHECK(elsewhere > 1000);
}

TEST_CASE("writes wait for the requested number of replicas, and report when there are fewer")
{
	Sentinels s;
	TempDir dir;
	Result r = load(on(s, {"--ratio", "1:1", "-r", "100", "-n", "1000", "-c", "2", "--wait", "2,2s",
			       "--json", dir.file("json")}));
	INFO(r.err);
	REQUIRE(r.status == 0);
	Json run = only_run(dir.file("json"));
	CHECK(run["total"]["requests"] == 1000);
	CHECK(run["total"]["errors"] == 0);
	// A round trip to replicas is in every write and in no read.
	CHECK(run["operations"]["SET"]["latency_ns"]["min"].get<uint64_t>() > 0);
	CHECK(s.primary().info("cmdstat_wait") != "");
	CHECK(std::stoull(s.primary().info("cmdstat_wait").substr(6)) ==
	      run["operations"]["SET"]["requests"].get<uint64_t>());

	r = load(on(s, {"--ratio", "1:1", "-r", "100", "-n", "20", "-c", "2", "--wait", "3,10ms", "--json",
			dir.file("json")}));
	INFO(r.err);
	run = only_run(dir.file("json"));
	CHECK(run["total"]["errors"] == run["operations"]["SET"]["requests"]);
	CHECK(run["error_replies"]["NOREPLICAS"] == run["operations"]["SET"]["requests"]);
}

TEST_CASE("Sentinels that do not know the primary, or do not exist")
{
	Sentinels s(1);
	Result r = load({"--sentinel", s.sentinel_address(2), "--master", "another", "-q"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "no primary named \"another\""));
	CHECK(lines(r.err) == 1);
	r = load({"--sentinel", "127.0.0.1:" + std::to_string(free_port()), "-q"});
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
	// The first does not exist, the second does.
	TempDir dir;
	r = load({"--sentinel", "127.0.0.1:" + std::to_string(free_port()), "--sentinel",
		  s.sentinel_address(0), "--master", Sentinels::name, "-q", "-n", "100", "-c", "1"});
	INFO(r.err);
	CHECK(r.status == 0);
	r = load({"--sentinel", s.address(0), "--master", Sentinels::name, "-q"});
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
}
