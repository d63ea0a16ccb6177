// SPDX-License-Identifier: MIT
// A run whose requests were timed by another clock than the server's. The load generator is in a time
// namespace, which shifts its clock by a known offset, so that the estimated offset can be checked.
#include <csignal>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr int64_t kAhead_s = 86'400;
constexpr double kStopped_s = 0.3;

std::vector<std::string> a_day_ahead(std::vector<std::string> argv)
{
	std::vector<std::string> all = {"unshare", "-T",	  "--monotonic", std::to_string(kAhead_s),
					"--fork",  "--kill-child"};
	all.insert(all.end(), argv.begin(), argv.end());
	return all;
}

Json explained(const std::string &run_path)
{
	const Result r =
	    run({program("forktail"), "explain", "--json", "--slow", "100ms", run_path}, Seconds(60));
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

void wait_for(Process *process, const std::string &text)
{
	REQUIRE(eventually(
	    [&] {
		    return (process->err() + process->out()).find(text) != std::string::npos ||
			   !process->running();
	    },
	    Seconds(60)));
	INFO(process->err());
	REQUIRE(process->running());
}

} // namespace

TEST_CASE("a stall is found on requests timed by another clock, and the clocks' difference is known")
{
	if (geteuid() != 0 || run(a_day_ahead({"true"})).status != 0) {
		WARN("SKIPPED: needs root and time namespaces");
		return;
	}
	TempDir dir;
	Redis redis({.tcp = true, .config = {}});
	const std::string clock_at = "127.0.0.1:" + std::to_string(free_port());
	Process serve({program("forktail"), "clock", "serve", "--listen", clock_at});
	wait_for(&serve, "answering on");
	Process recorder({program("forktail"), "record", "--pid", std::to_string(redis.pid()), "-o",
			  dir.file("server.forktail")});
	wait_for(&recorder, "recording ");
	Process probe(a_day_ahead({program("forktail"), "clock", "probe", clock_at, "-o",
				   dir.file("clock.forktail"), "--interval", "50ms", "--duration", "6s"}));
	Process load(a_day_ahead(
	    {program("forktail"), "load", "-q", "--server", "127.0.0.1:" + std::to_string(redis.port()), "-o",
	     dir.file("load.forktail"), "--rate", "2000", "-c", "4", "--duration", "4"}));
	std::this_thread::sleep_for(Seconds(2));
	kill(redis.pid(), SIGSTOP);
	std::this_thread::sleep_for(Seconds(kStopped_s));
	kill(redis.pid(), SIGCONT);
	INFO(load.err() << probe.err());
	REQUIRE(load.wait(Seconds(60)) == 0);
	REQUIRE(probe.wait(Seconds(60)) == 0);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
	serve.signal(SIGINT);
	REQUIRE(serve.wait(Seconds(60)) == 0);

	const Json json = explained(dir.path());
	REQUIRE(json["clocks"]["hosts"].size() == 2);
	const Json &other = json["clocks"]["hosts"][1];
	const int64_t offset_ns = other["offset_ns"].get<int64_t>() + kAhead_s * 1'000'000'000,
		      bound_ns = other["bound_ns"].get<int64_t>();
	INFO("off by " << offset_ns << " ns, within " << bound_ns);
	CHECK(std::abs(offset_ns) <= bound_ns);
	CHECK(bound_ns < 10'000'000); // a larger bound would be useless here
	REQUIRE(json["causes"].size() > 0);
	CHECK(json["causes"][0]["cause"] == "stopped");
	CHECK(json["causes"][0]["share"].get<double>() > 0.5);
	REQUIRE(json["episodes"].size() > 0);

	// Without the round trips nothing is known about the server.
	std::filesystem::remove(dir.file("clock.forktail"));
	const Json alone = explained(dir.path());
	CHECK_FALSE(alone.contains("clocks"));
	CHECK(alone.dump().find("use different clocks") != std::string::npos);
	for (const Json &cause : alone["causes"])
		CHECK(cause["cause"] != "stopped");
}
