// SPDX-License-Identifier: MIT
// The demo from start to end on a small data set: the files it leaves, and that forktail's figures equal
// Redis' own.
#include <cstdlib>
#include <filesystem>

#include "analysis/source.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace
{

// How far Redis' time of a fork may differ from the recorder's. Redis counts microseconds, and starts and
// stops around clone.
constexpr uint64_t kWatchErrorNs = 200'000;

const Json *CauseIn(const Json &explanation, const std::string &name)
{
	for (const Json &cause : explanation["causes"])
		if (cause["cause"] == name)
			return &cause;
	return nullptr;
}

// The fork of the server's main thread within [from_ns, to_ns].
const ft_span *ForkIn(const forktail::analysis::Run &run, uint64_t from_ns, uint64_t to_ns)
{
	for (const ft_span &span : run.spans)
		if (span.owner == FT_FORK && !span.off_cpu && span.start_ns >= from_ns &&
		    span.start_ns + span.duration_ns <= to_ns)
			return &span;
	return nullptr;
}

// Off-CPU time of `fork`'s thread directly after it, up to to_ns.
uint64_t WaitsBehind(const forktail::analysis::Run &run, const ft_span &fork, uint64_t to_ns)
{
	uint64_t waited_ns = 0, fork_end_ns = fork.start_ns + fork.duration_ns;
	for (const ft_span &span : run.spans)
		if (span.tid == fork.tid && span.off_cpu && span.depth == 0 && span.start_ns >= fork_end_ns &&
		    span.start_ns + span.duration_ns <= to_ns)
			waited_ns += span.duration_ns;
	return waited_ns;
}

} // namespace

TEST_CASE("The demo records, explains and reports the effects of a snapshot and a rewrite")
{
	// A small data set and a long load: the snapshot must end before the rewrite begins on a busy machine
	// too.
	LabRun demo({"--size-mb", "100", "--seconds", "12"});
	auto status = demo.lab->wait(Seconds(100));
	std::string out = demo.lab->out();
	INFO(demo.lab->err() << "\n" << out);
	REQUIRE(status == 0);

	// It leaves the run, and nothing else.
	CHECK(demo.Alive() == std::vector<std::string>{});
	CHECK(demo.Left() == std::vector<std::string>{});
	for (const char *name : {"server.forktail", "load.forktail", "run.json", "report.html", "redis.log"})
		CHECK(fs::file_size(demo.run + "/" + name) > 0);
	std::string last_line = "\nreport: " + demo.run + "/report.html\n";
	CHECK(out.size() > last_line.size());
	CHECK(out.find(" requests in ") != std::string::npos);
	CHECK(out.substr(out.size() - std::min(out.size(), last_line.size())) == last_line);

	// Its printed report on the run.
	Json info = parse_json(read_file(demo.run + "/run.json"));
	CHECK(info["versions"]["redis"].get<std::string>().substr(0, 1) >= "6");
	CHECK(info["redis_config"]["appendonly"] == "yes");
	CHECK(info["redis_config"]["appendfsync"] == "everysec");
	CHECK(info["used_memory_bytes"] > 90 << 20);
	CHECK(info["commands"].size() == 4);
	REQUIRE(info["server_reports"].size() == 2);
	CHECK(info["server_reports"][0]["kind"] == "bgsave");
	CHECK(info["server_reports"][0]["rdb_last_cow_size"] > 0);
	CHECK(info["server_reports"][1]["kind"] == "bgrewriteaof");
	CHECK(info["server_reports"][1]["aof_last_cow_size"] > 0);

	// The explanation names the commands that Redis was given.
	// Requests delayed by the fork waited for more than a millisecond, however busy the machine is
	// otherwise.
	Result explained =
	    forktail::test::run({program("forktail"), "explain", "--json", "--slow", "1ms", demo.run});
	REQUIRE(explained.status == 0);
	Json explanation = parse_json(explained.out);
	CHECK(explanation["requests"]["count"] > 100'000);
	CHECK(explanation["requests"]["errors"] == 0);
	// The load's threads are traced too, by default.
	size_t load_threads = 0;
	for (const Json &thread : explanation["account"]["threads"])
		load_threads += thread["client"] == true && thread["comm"] == "load-0";
	CHECK(load_threads > 0);
	for (const char *name : {"fork", "cow-copy"}) {
		const Json *cause = CauseIn(explanation, name);
		INFO(name << " in " << explanation["causes"].dump());
		REQUIRE(cause);
		CHECK((*cause)["time_ns"] > 0);
		CHECK((*cause)["requests"] > 0);
	}

	// Forks lasted as long as Redis reports. Redis stops its clock in user space, so its time includes a
	// CPU wait between clone's return and that. As many CPU hogs as CPUs show it. Other time in between
	// (interrupts, the first copy-on-write faults, waits too short for a span) is in tallies, and on a
	// busy machine takes up to a millisecond.
	forktail::analysis::Run recorded;
	std::string error;
	REQUIRE(forktail::analysis::LoadRun(demo.run, &recorded, &error));
	for (const Json &report : info["server_reports"]) {
		const ft_span *fork = ForkIn(recorded, report["asked_ns"], report["t_ns"]);
		REQUIRE(fork);
		uint64_t redis_ns = report["latest_fork_usec"].get<uint64_t>() * 1000;
		uint64_t waited_ns = WaitsBehind(recorded, *fork, fork->start_ns + redis_ns + kWatchErrorNs);
		INFO("fork " << fork->duration_ns << " ns, waits behind it " << waited_ns
			     << " ns, Redis says " << redis_ns << " ns");
		CHECK(static_cast<double>(fork->duration_ns + waited_ns) ==
		      Approx(static_cast<double>(redis_ns)).epsilon(0.1).margin(1e6));
	}
}
