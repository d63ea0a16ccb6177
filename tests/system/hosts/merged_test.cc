// SPDX-License-Identifier: MIT
// One explanation of several load generators' requests to one server: percentiles are checked against those
// of all their requests together, which the test reads and sorts itself.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace
{

std::vector<uint64_t> latencies_of(const std::string &path)
{
	ft_reader *reader = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&reader, path.c_str(), error, sizeof error) == 0);
	std::vector<uint64_t> all;
	ft_block block;
	while (ft_reader_next(reader, &block) == 1) {
		if (block.kind != FT_BLOCK_REQUEST)
			continue;
		size_t before = all.size();
		all.resize(before + block.count);
		REQUIRE(ft_requests_latencies(block.payload, block.bytes, block.count, &all[before],
					      nullptr) == static_cast<int>(block.count));
	}
	ft_reader_close(reader);
	return all;
}

Json explained(std::vector<std::string> more)
{
	std::vector<std::string> command = {program("forktail"), "explain", "--json"};
	command.insert(command.end(), more.begin(), more.end());
	const Result r = run(command, Seconds(60));
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

// The server's host as the others see it. A loopback address would mean each host itself.
constexpr char kAddress[] = "10.78.0.1";
struct Address {
	const bool usable =
	    run({"ip", "addr", "add", std::string(kAddress) + "/32", "dev", "lo"}).status == 0;
	~Address() { run({"ip", "addr", "del", std::string(kAddress) + "/32", "dev", "lo"}); }
};

// Nearest rank, in ten thousandths so that it is a whole number.
uint64_t percentile(const std::vector<uint64_t> &sorted, uint64_t of_10000)
{
	return sorted[(sorted.size() * of_10000 + 9999) / 10000 - 1];
}

void check_percentiles(const Json &json, std::vector<uint64_t> all)
{
	std::sort(all.begin(), all.end());
	REQUIRE(json["requests"]["count"].get<uint64_t>() == all.size());
	REQUIRE(json["requests"]["errors"].get<uint64_t>() == 0);
	const Json &latency = json["requests"]["latency_ns"];
	CHECK(latency["p50"].get<uint64_t>() == percentile(all, 5000));
	CHECK(latency["p90"].get<uint64_t>() == percentile(all, 9000));
	CHECK(latency["p99"].get<uint64_t>() == percentile(all, 9900));
	CHECK(latency["p99.9"].get<uint64_t>() == percentile(all, 9990));
	CHECK(latency["p99.99"].get<uint64_t>() == percentile(all, 9999));
	CHECK(latency["max"].get<uint64_t>() == all.back());
}

} // namespace

TEST_CASE("several hosts' requests are one log, and a stall is found in each host's requests")
{
	TempDir dir;
	Address address;
	if (!address.usable) {
		WARN("SKIPPED: needs root to add an address");
		return;
	}
	Redis redis(
	    {.tcp = true,
	     .config = {"--bind", "0.0.0.0", "--protected-mode", "no", "--enable-debug-command", "yes"}});
	const std::string server_at = std::string(kAddress) + ":" + std::to_string(redis.port());
	for (const char *host : {"a", "b", "c"})
		fs::create_directories(dir.file(std::string("hosts/") + host));
	const std::string a = dir.file("hosts/a/load.forktail"), b = dir.file("hosts/b/load.forktail"),
			  server = dir.file("hosts/c/server.forktail");
	Process recorder({program("forktail"), "record", "--pid", std::to_string(redis.pid()), "-o", server});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	INFO(recorder.err());
	REQUIRE(recorder.running());
	auto load = [&](const std::string &log, const std::string &rate, const std::string &seconds) {
		return std::vector<std::string>{program("forktail"),
						"load",
						"-q",
						"--server",
						server_at,
						"-o",
						log,
						"--rate",
						rate,
						"-c",
						"4",
						"-t",
						"get",
						"--duration",
						seconds};
	};
	Process first(load(a, "9000", "4")), second(load(b, "3000", "3"));
	std::this_thread::sleep_for(Seconds(1.5));
	REQUIRE(redis.command({"DEBUG", "SLEEP", "0.2"}) == "OK");
	REQUIRE(first.wait(Seconds(60)) == 0);
	REQUIRE(second.wait(Seconds(60)) == 0);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);

	std::vector<uint64_t> all = latencies_of(a);
	const std::vector<uint64_t> others = latencies_of(b);
	all.insert(all.end(), others.begin(), others.end());
	const Json whole = explained({dir.path()});
	check_percentiles(whole, all);
	// In many windows of the log, too.
	const Json bit_by_bit = explained({"--memory", "16M", dir.path()});
	check_percentiles(bit_by_bit, all);
	CHECK(bit_by_bit["causes"] == whole["causes"]);

	REQUIRE(whole["causes"].size() > 0);
	CHECK(whole["causes"][0]["cause"] == "sleep");
	REQUIRE(whole["loads"].size() == 2);
	REQUIRE(whole["hops"].size() == 1);
	CHECK(whole["hops"][0]["name"].get<std::string>().find(" on c") != std::string::npos);

	// The complete part of a cut log counts, together with the other log.
	fs::resize_file(b, fs::file_size(b) * 2 / 3);
	std::vector<uint64_t> rest = latencies_of(a);
	const std::vector<uint64_t> left = latencies_of(b);
	CHECK(left.size() < others.size());
	rest.insert(rest.end(), left.begin(), left.end());
	check_percentiles(explained({dir.path()}), rest);
}
