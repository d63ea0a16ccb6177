// SPDX-License-Identifier: MIT
// A load generator that is recorded with its server: what the test keeps it from is named, and no cause of
// the server's.
#include <csignal>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/recorder.h"

using namespace ft::test;
using Json = nlohmann::json;

namespace
{

constexpr double kMs = 1e6;

// Records a load that is stopped for 200 ms amid its work, and explains what took 20 ms or more. The load
// starts before the recording, or while it runs.
Json stopped_load(bool before)
{
	TempDir dir;
	Redis server;
	std::vector<std::string> load_argv = {program("forktail"),
					      "load",
					      "-q",
					      "-s",
					      server.socket(),
					      "--rate",
					      "2000",
					      "-c",
					      "4",
					      "-o",
					      dir.file("load.forktail"),
					      "--duration",
					      "120"};
	std::unique_ptr<Process> load;
	if (before)
		load = std::make_unique<Process>(load_argv);
	Process recorder({program("forktail"), "record", "--with-client", "--pid",
			  std::to_string(server.pid()), "-o", dir.file("server.forktail")});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	if (!before)
		load = std::make_unique<Process>(load_argv);
	const uint64_t served = std::stoull(server.info("total_commands_processed"));
	REQUIRE(
	    eventually([&] { return std::stoull(server.info("total_commands_processed")) > served + 2000; },
		       Seconds(60)));
	load->signal(SIGSTOP);
	sleep_for(Seconds(0.2));
	load->signal(SIGCONT);
	const uint64_t then = std::stoull(server.info("total_commands_processed"));
	REQUIRE(eventually([&] { return std::stoull(server.info("total_commands_processed")) > then + 1000; },
			   Seconds(60)));
	load->signal(SIGINT);
	INFO(load->err());
	REQUIRE(load->wait(Seconds(60)) == 0);
	CHECK(recorder.running()); // a load generator's end is not a target's
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
	const Result r =
	    run({program("forktail"), "explain", dir.path(), "--json", "--requests", "--slow", "20ms"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

void check(const Json &j)
{
	double stopped = 0;
	for (const Json &t : j["account"]["threads"]) {
		const double wall = t["wall_ns"], accounted = t["accounted_ns"];
		INFO(t.dump());
		CHECK(std::abs(accounted - wall) <= wall * 0.001 + 1000);
		CHECK((t["client"] == true) == (t["role"] == "load generator"));
		CHECK(!(t["client"] == true && t["serving"] == true));
		if (t["client"] == true && t["comm"] == "load-0")
			stopped = std::max(stopped, t["by_cause"].value("stopped", 0.0));
	}
	CHECK(stopped >= 190 * kMs);
	// The request with the longest wait of its own for the load generator was due as that was stopped.
	double longest = 0;
	Json episode;
	for (const Json &r : j["slow_requests"]) {
		uint64_t sum = 0;
		for (const Json &part : r["parts"]) {
			sum += part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
			if (part["cause"] == "client-late" && part["direct_ns"].get<double>() > longest) {
				longest = part["direct_ns"];
				episode = j["episodes"][r["episode"].get<size_t>()];
			}
		}
		REQUIRE(sum == r["latency_ns"].get<uint64_t>());
	}
	REQUIRE(!episode.is_null());
	INFO(episode.dump(1));
	CHECK(longest >= 150 * kMs);
	CHECK(episode["causes"][0]["cause"] == "client-late");
	for (const Json &cause : episode["causes"])
		CHECK(cause["cause"] != "stopped");
	std::string text;
	for (const Json &sentence : episode["evidence"])
		text += sentence.get<std::string>() + "\n";
	CHECK(text.find("the load generator's thread load-0 (") != std::string::npos);
	CHECK(text.find("was stopped (SIGSTOP) for ") != std::string::npos);
}

} // namespace

TEST_CASE("a load generator that starts while recording and is stopped is late by itself")
{
	REQUIRE(root());
	check(stopped_load(false));
}

TEST_CASE("so is one that was there already")
{
	REQUIRE(root());
	check(stopped_load(true));
}
