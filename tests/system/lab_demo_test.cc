// SPDX-License-Identifier: MIT
// The demo from end to end on a small data set: what it leaves, and that forktail's figures agree with Redis'
// own.
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/run.h"
#include "tests/support/catch.h"
#include "tests/system/lab_support.h"

using namespace ft::test;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace
{

const Json *CauseIn(const Json &explanation, const std::string &name)
{
	for (const Json &cause : explanation["causes"])
		if (cause["cause"] == name)
			return &cause;
	return nullptr;
}

// The fork of the server's main thread that lies in [from_ns, to_ns].
const ft_span *ForkIn(const forktail::Run &run, uint64_t from_ns, uint64_t to_ns)
{
	for (const ft_span &span : run.spans)
		if (span.owner == FT_FORK && !span.off_cpu && span.start_ns >= from_ns &&
		    span.start_ns + span.duration_ns <= to_ns)
			return &span;
	return nullptr;
}

} // namespace

TEST_CASE("The demo records, explains and reports what a snapshot and a rewrite did")
{
	LabRun demo({"--size-mb", "200", "--seconds", "8"});
	auto status = demo.lab->wait(Seconds(100));
	std::string out = demo.lab->out();
	INFO(demo.lab->err() << "\n" << out);
	REQUIRE(status == 0);

	// What it leaves: the run, and nothing else.
	CHECK(demo.Alive() == std::vector<std::string>{});
	CHECK(demo.Left() == std::vector<std::string>{});
	for (const char *name : {"server.forktail", "load.forktail", "run.json", "report.html", "redis.log"})
		CHECK(fs::file_size(demo.run + "/" + name) > 0);
	std::string last_line = "\nreport: " + demo.run + "/report.html\n";
	CHECK(out.size() > last_line.size());
	CHECK(out.substr(out.size() - std::min(out.size(), last_line.size())) == last_line);

	// What it says of the run.
	Json info = Json::parse(read_file(demo.run + "/run.json"));
	CHECK(info["versions"]["redis"].get<std::string>().substr(0, 1) >= "6");
	CHECK(info["redis_config"]["appendonly"] == "yes");
	CHECK(info["redis_config"]["appendfsync"] == "everysec");
	CHECK(info["used_memory_bytes"] > 180 << 20);
	CHECK(info["commands"].size() == 4);
	REQUIRE(info["server_reports"].size() == 2);
	CHECK(info["server_reports"][0]["kind"] == "bgsave");
	CHECK(info["server_reports"][0]["rdb_last_cow_size"] > 0);
	CHECK(info["server_reports"][1]["kind"] == "bgrewriteaof");
	CHECK(info["server_reports"][1]["aof_last_cow_size"] > 0);

	// The explanation names what Redis was made to do.
	Result explained = run({program("forktail"), "explain", "--json", demo.run});
	REQUIRE(explained.status == 0);
	Json explanation = Json::parse(explained.out);
	CHECK(explanation["requests"]["count"] > 60'000);
	CHECK(explanation["requests"]["errors"] == 0);
	for (const char *name : {"fork", "cow-copy"}) {
		const Json *cause = CauseIn(explanation, name);
		INFO(name << " in " << explanation["causes"].dump());
		REQUIRE(cause);
		CHECK((*cause)["time_ns"] > 0);
		CHECK((*cause)["requests"] > 0);
		CHECK(out.find(name) != std::string::npos);
	}

	// Forks lasted as long as Redis says.
	forktail::Run recorded;
	std::string error;
	REQUIRE(forktail::LoadRun(demo.run, &recorded, &error));
	for (const Json &report : info["server_reports"]) {
		INFO(report.dump());
		const ft_span *fork = ForkIn(recorded, report["asked_ns"], report["t_ns"]);
		REQUIRE(fork);
		CHECK(static_cast<double>(fork->duration_ns) / 1e3 ==
		      Approx(report["latest_fork_usec"].get<double>()).epsilon(0.1));
	}
}
