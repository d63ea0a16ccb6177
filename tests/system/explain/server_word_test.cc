// SPDX-License-Identifier: MIT
// Without a recorder on the server's host, forktail explain uses the server's own reports: the load
// generator's observer logs the slow log and forks, and explain shows them with their episode.
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

TEST_CASE("a slow command known only to the server is named with its episode")
{
	Redis redis({.config = {"--slowlog-log-slower-than", "10000", "--enable-debug-command", "yes"}});
	TempDir dir;
	Process load(load_command(
	    {"-s", redis.socket(), "--rate", "1000", "--duration", "4", "-o", dir.file("load.forktail")}));
	usleep(1'500'000);
	redis.command({"DEBUG", "SLEEP", "0.4"});
	REQUIRE(load.wait(Seconds(30)) == 0);

	Result explained =
	    run({program("forktail"), "explain", "--slow", "100ms", dir.file("load.forktail"), "--all"});
	INFO(explained.out << explained.err);
	CHECK(explained.status == 0);
	CHECK(contains(explained.out, "Redis' slow log lists DEBUG SLEEP 0.4"));
	// It is not reported for unrelated requests.
	Result json =
	    run({program("forktail"), "explain", "--json", "--slow", "100ms", dir.file("load.forktail")});
	size_t told = 0, episodes = 0;
	const Json explanation = parse_json(json.out);
	for (const Json &episode : explanation["episodes"]) {
		episodes++;
		for (const Json &sentence : episode["evidence"])
			told += contains(sentence.get<std::string>(), "DEBUG SLEEP");
	}
	CHECK(told >= 1);
	CHECK(told <= episodes);
}

TEST_CASE("a server that was away is named with the requests that waited for it")
{
	RedisOptions tcp;
	tcp.tcp = true;
	auto mortal = std::make_unique<Redis>(tcp);
	Redis other(tcp);
	const std::string gone = "127.0.0.1:" + std::to_string(mortal->port());
	TempDir dir;
	Process load(load_command({"--server", gone, "--server", "127.0.0.1:" + std::to_string(other.port()),
				   "-r", "1000", "--rate", "1000", "--duration", "4", "--retry", "1s", "-q",
				   "-o", dir.file("load.forktail")}));
	REQUIRE(eventually([&] { return read_log(dir.file("load.forktail")).requests.size() > 10; },
			   Seconds(30)));
	mortal.reset();
	REQUIRE(load.wait(Seconds(60)).has_value());
	const Result explained =
	    run({program("forktail"), "explain", "--slow", "500ms", dir.file("load.forktail"), "--all"});
	INFO(explained.out << explained.err);
	CHECK(explained.status == 0);
	CHECK(contains(explained.out, "the keys of " + gone + " had no server for"));
}
