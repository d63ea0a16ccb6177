// SPDX-License-Identifier: MIT
// Plans: what they mean for each host, and their errors by line. Also the lines that ranks print.
#include "common/process.h"
#include "hosts/hosts.h"
#include "tests/support/catch.h"

using namespace forktail::hosts;

namespace
{

const std::string kHosts = "duration = \"90s\"\n[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\naddress = "
			   "\"10.0.0.2\"\n";

std::string Refusal(const std::string &text)
{
	Plan plan;
	std::string error;
	CHECK(!ParsePlan(text, "p.toml", &plan, &error));
	return error;
}

} // namespace

TEST_CASE("A plan defines what runs where, with which options")
{
	Plan plan;
	std::string error;
	REQUIRE(ParsePlan(kHosts +
			      "[[record]]\nhost = \"a\"\nport = [6379, 6380]\noptions = [\"--light\"]\n"
			      "[[record]]\nhost = \"a\"\nname-of = \"nutcracker\"\n"
			      "[[load]]\nhost = \"b\"\nto = \"a:6379\"\noptions = [\"--rate\", \"10\"]\n",
			  "p.toml", &plan, &error));
	REQUIRE(plan.hosts.size() == 2);
	CHECK(plan.hosts[0].address == "a");
	CHECK(plan.hosts[1].network == "10.0.0.2");
	const std::vector<Job> a = JobsOf(plan, plan.hosts[0], "/d"), b = JobsOf(plan, plan.hosts[1], "/d");
	REQUIRE(a.size() == 3);
	CHECK(forktail::common::CommandLine(a[0].argv) == "forktail-clock serve --listen a");
	CHECK(forktail::common::CommandLine(a[1].argv) ==
	      "forktail-record -o /d/server.forktail --port 6379 --port 6380 --duration 212s --light");
	CHECK(forktail::common::CommandLine(a[2].argv) ==
	      "forktail-record -o /d/server-2.forktail --name nutcracker --duration 212s");
	REQUIRE(b.size() == 2);
	CHECK(forktail::common::CommandLine(b[0].argv) ==
	      "forktail-clock probe a -o /d/clock.forktail --duration 212s");
	CHECK(forktail::common::CommandLine(b[1].argv) ==
	      "forktail-load -o /d/load.forktail --progress --server a:6379 --duration 90000ms --rate 10");
	CHECK(RolesOf(plan, plan.hosts[0]) == "2 recorders");
	CHECK(RolesOf(plan, plan.hosts[1]) == "load");
	CHECK(forktail::common::CommandLine({"a b", "it's", ""}) == "'a b' 'it'\\''s' ''");
}

TEST_CASE("An error in a plan is reported with its line")
{
	const std::string load = "[[load]]\nhost = \"a\"\n";
	CHECK(Refusal(kHosts + "[[load]]\nhost = \"c\"\n") ==
	      "p.toml:7: a load needs a `host` from the plan, not \"c\"");
	CHECK(Refusal(kHosts + load + "rate = 3\n") == "p.toml:9: a load has no `rate`");
	CHECK(Refusal("duraton = \"3s\"\n" + kHosts + load) == "p.toml:1: a plan has no `duraton`");
	CHECK(Refusal(kHosts + "[[hosts]]\nname = \"a\"\n" + load) == "p.toml:7: two hosts have the name a");
	CHECK(Refusal(kHosts + "[[hosts]]\nname = \"c\"\naddress = \"10.0.0.2\"\n" + load) ==
	      "p.toml:7: the hosts b and c have the same address, 10.0.0.2");
	CHECK(Refusal(kHosts + "[[hosts]]\nname = \"../x\"\n" + load)
		  .find("p.toml:7: a host needs a `name` that consists of") == 0);
	CHECK(Refusal(kHosts + "[[hosts]]\nname = \"c\"\naddress = \"c:2,d\"\n" + load)
		  .find("p.toml:7: the address") == 0);
	CHECK(Refusal(kHosts) == "p.toml:1: the plan needs at least one [[record]] or [[load]]");
	CHECK(Refusal("duration = \"3 parsecs\"\n") ==
	      "p.toml:1: `duration` must be a time such as \"30s\", not \"3 parsecs\"");
	CHECK(Refusal(kHosts + "[[record]]\nhost = \"a\"\n").find("p.toml:7: a [[record]] needs a target") ==
	      0);
	CHECK(Refusal(kHosts + load + "name = \"x\"\n" + load + "name = \"x\"\n") ==
	      "p.toml:10: the name \"x\" is already used on a");
	CHECK(Refusal(kHosts + "[load]\nhost = \"a\"\n").find("[[load]] must be written with two brackets") !=
	      std::string::npos);
	CHECK(Refusal("scratch = \"here\"\n" + kHosts + load) ==
	      "p.toml:1: `scratch` must be an absolute path, not \"here\"");
	CHECK(Refusal("on_death = \"cry\"\n" + kHosts + load) ==
	      "p.toml:1: `on_death` must be \"end\" or \"continue\", not \"cry\"");
	CHECK(Refusal("a = \n").find("p.toml:1: ") == 0);
}

TEST_CASE("Each host is an application context of mpirun that has its name")
{
	Plan plan;
	std::string error;
	REQUIRE(ParsePlan(kHosts + "[[load]]\nhost = \"a\"\n", "p.toml", &plan, &error));
	plan.mpirun = {"--mca", "x", "y"};
	plan.hosts[1].programs = "/opt/ft";
	const std::string line = forktail::common::CommandLine(
	    MpiCommand({"mpirun", "/b/forktail-rank", "/p.toml", "/run", "t", "", {"-v"}}, plan, "gather",
		       {&plan.hosts[0], &plan.hosts[1]}));
	CHECK(
	    line.find(" --mca x y -v --host localhost -np 1 /b/forktail-rank gather t --plan /p.toml /run : "
		      "--host a -np 1 /b/forktail-rank gather t a : "
		      "--host 10.0.0.2 -np 1 /opt/ft/forktail-rank gather t b") != std::string::npos);
}

TEST_CASE("Load generators' progress is added up, and the worst one is named")
{
	LoadSecond s;
	REQUIRE(ReadProgress(
	    "SET+GET  12 s  40,123/s  p50 0.100 ms  p99 0.310 ms  max 1.200 ms  errors 4  ETA 3 s", &s));
	CHECK(s.elapsed_s == 12);
	CHECK(s.per_second == 40123);
	CHECK(s.p99_ms == Approx(0.31));
	CHECK(s.errors == 4);
	REQUIRE(ReadProgress("commands  1 s  7/s  no answer  errors 0", &s));
	CHECK(s.p99_ms == 0);
	CHECK(!ReadProgress("forktail-load: 10.0.0.1 refused the connection", &s));
	CHECK(!ReadProgress("/s  ", &s));
	CHECK(MergedProgress({{"a/load", {12, 1000, 0.3, 1.2, 1}}, {"b/load", {11, 40000, 0.5, 0.9, 2}}}) ==
	      "12 s  41,000/s from 2 loads  worst p99 0.500 ms (b)  max 1.200 ms  errors 3");
}

TEST_CASE("Only lines of ranks are parsed")
{
	Message message;
	CHECK(ParseMessage("{\"forktail\":\"here\",\"host\":\"a\"}", &message));
	CHECK(TextOf(message, "host") == "a");
	CHECK(TextOf(message, "none").empty());
	for (const char *line : {"", "mpirun noticed that process rank 2", "{\"forktail\":3}",
				 "[\"forktail\"]", "{\"forktail\":"})
		CHECK(!ParseMessage(line, &message));
}
