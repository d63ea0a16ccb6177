// SPDX-License-Identifier: MIT
// A load generator's log and a kernel log of the same requests at a real server: they are joined, and a
// stopped server is named while the network has little of the time.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/load/background.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t kMs = 1'000'000;

bool stopped(pid_t pid)
{
	return read_file("/proc/" + std::to_string(pid) + "/stat").find(") T ") != std::string::npos;
}

} // namespace

TEST_CASE("explained: requests of a load that the server's kernel saw too, while the server was stopped")
{
	REQUIRE(root());
	TempDir dir;
	Redis server({.tcp = true, .config = {}});
	Recorder recorder(server.pid(), {"--requests=1/1"});
	BackgroundLoad load({"-p", std::to_string(server.port()), "-c", "4", "--rate", "2000", "--duration",
			     "4s", "--arrival-times"});
	load.under_way();
	server.process().signal(SIGSTOP);
	REQUIRE(eventually([&] { return stopped(server.pid()); }, Seconds(10)));
	const uint64_t stop_ns = ft_now_ns();
	sleep_for(Seconds(0.05));
	const uint64_t go_ns = ft_now_ns();
	server.process().signal(SIGCONT);
	load.end();
	recorder.stop();
	std::filesystem::copy_file(recorder.path(), dir.file("server.forktail"));
	std::filesystem::copy_file(load.dir.file("log"), dir.file("load.forktail"));
	const Result r =
	    run({program("forktail"), "explain", dir.path(), "--json", "--requests", "--slow", "20ms"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json j = parse_json(r.out);
	REQUIRE(j["loads"].size() == 1);
	CHECK(j["loads"][0]["source"] == "load-generator");
	const Json &split = j["requests"]["network_split"];
	INFO(split.dump(1));
	// Those sent before the recorder saw their connection's socket may be missing.
	CHECK(split["known"].get<uint64_t>() > j["requests"]["count"].get<uint64_t>() * 95 / 100);
	CHECK(split["requests"].get<uint64_t>() > 0);

	size_t found = 0;
	uint64_t total_ns = 0;
	for (const Json &q : j["slow_requests"]) {
		const uint64_t latency_ns = q["latency_ns"];
		uint64_t sum = 0, at_server = 0;
		for (const Json &part : q["parts"]) {
			const uint64_t ns =
			    part["direct_ns"].get<uint64_t>() + part["queued_ns"].get<uint64_t>();
			sum += ns;
			at_server += part["cause"] == "stopped" ? ns : 0;
		}
		INFO(q.dump(1));
		CHECK(sum == latency_ns);
		total_ns += latency_ns;
		const uint64_t start_ns = q["start_ns"];
		if (start_ns >= go_ns || start_ns + latency_ns <= go_ns || !q.count("network_split"))
			continue;
		found++;
		CHECK(at_server >= (go_ns - std::max(start_ns, stop_ns)) * 9 / 10);
		const Json &own = q["network_split"];
		CHECK(own["to_server_ns"].get<uint64_t>() + own["to_client_ns"].get<uint64_t>() +
			  own["unread_at_server_ns"].get<uint64_t>() <=
		      latency_ns - at_server);
	}
	CHECK(found > 0);
	CHECK(split["to_server_ns"].get<uint64_t>() + split["to_client_ns"].get<uint64_t>() < total_ns);
	CHECK(j["causes"][0]["cause"] == "stopped");
	CHECK(total_ns >= 20 * kMs);
}
