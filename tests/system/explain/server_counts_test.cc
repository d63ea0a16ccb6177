// SPDX-License-Identifier: MIT
// What a real server counted of its commands and threads, as explain shows it beside the requests of a load
// and the kernel's account.
#include <cstdlib>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/system/load/load.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

// The entry with this name; null without.
Json Named(const Json &list, const std::string &name)
{
	for (const Json &one : list)
		if (one["name"] == name)
			return one;
	return nullptr;
}

// "17" of "calls=17,usec=40,..."
uint64_t CallsOf(Redis &redis, const std::string &command)
{
	return std::strtoull(redis.info("cmdstat_" + command).substr(sizeof("calls=") - 1).c_str(), nullptr,
			     10);
}

constexpr int kConnections = 6;

void CheckCommands(Redis &redis, const Log &log, const Json &counted)
{
	INFO(counted.dump(1));
	CHECK(counted["ns"].get<uint64_t>() > 1'000'000'000);
	for (const char *op : {"GET", "SET"}) {
		const std::string command = op[0] == 'G' ? "get" : "set";
		const Json c = Named(counted["commands"], command);
		REQUIRE(!c.is_null());
		// The first reading of the counters was before the load, or some requests after its begin.
		const uint64_t calls = CallsOf(redis, command), requests = c["requests"];
		CHECK(c["calls"].get<uint64_t>() <= calls);
		CHECK(c["calls"].get<uint64_t>() > calls * 9 / 10);
		// Those on their way during a reading; on a busy machine several on a connection.
		CHECK(std::abs(c["difference"].get<int64_t>()) <= static_cast<int64_t>(requests / 100));
		CHECK(c["calls"].get<int64_t>() - c["difference"].get<int64_t>() ==
		      static_cast<int64_t>(requests));
		CHECK(requests <= log.with_op(log.manifest["ops"][0] == op ? 0 : 1));
		CHECK(c["rejected"] == 0);
		CHECK(c["failed"] == 0);
		CHECK(c["p50_ns"].get<uint64_t>() >= 1000);
		CHECK(c["p99_ns"].get<uint64_t>() >= c["p50_ns"].get<uint64_t>());
		CHECK(c["served"].get<uint64_t>() > requests * 9 / 10);
		CHECK(c["service_ns"].get<uint64_t>() > c["mean_ns"].get<uint64_t>());
	}
	CHECK(!Named(counted["commands"], "info").contains("requests"));
}

void CheckThreads(Redis &redis, bool io_threads, const Json &counted)
{
	INFO(counted.dump(1));
	const Json main = Named(counted["threads"], "main");
	REQUIRE(!main.is_null());
	CHECK(main["tid"] == redis.pid());
	// The kernel counts context switches, and not what a hypervisor took away.
	const uint64_t cpu_ns = main["cpu_ns"], kernel_ns = main["kernel_cpu_ns"];
	CHECK(cpu_ns > kernel_ns / 2);
	CHECK(cpu_ns < kernel_ns * 2);
	CHECK(main["cpu_difference_ns"].get<int64_t>() == static_cast<int64_t>(cpu_ns - kernel_ns));
	CHECK(counted["threads"].size() == (io_threads ? 3 : 1));
	uint64_t connections = 0, reads = 0;
	for (size_t i = 1; i < counted["threads"].size(); i++) {
		const Json &t = counted["threads"][i];
		const std::string name = "io_thd_" + std::to_string(i);
		CHECK(t["name"] == name);
		CHECK(read_file("/proc/" + std::to_string(redis.pid()) + "/task/" +
				std::to_string(t["tid"].get<int>()) + "/comm") == name + "\n");
		CHECK(t["kernel_cpu_ns"].get<uint64_t>() > 0);
		CHECK(!t.contains("cpu_ns"));
		connections += t["connections"].get<uint64_t>();
		reads += t["reads"].get<uint64_t>();
	}
	if (io_threads) {
		CHECK(connections >= kConnections);
		CHECK(reads > 500);
	}
}

} // namespace

TEST_CASE("what a server counted of its commands and threads is beside what was recorded of them")
{
	REQUIRE(root());
	for (const std::string kind : {"redis", "redis-server", "valkey-server"}) {
		const std::string server = kind == "redis" ? "redis-server" : newer_server(kind);
		if (server.empty()) {
			WARN("SKIPPED: no " << kind << " of a later Debian (script/servers)");
			continue;
		}
		INFO(server);
		Redis redis({.tcp = false, .config = {"--io-threads", "3"}, .program = server});
		TempDir dir;
		Recorder recorder(redis.pid(), {"--requests=1/1"});
		const Result loaded =
		    load({"-s", redis.socket(), "-c", std::to_string(kConnections), "--ratio", "1:1",
			  "--rate", "500", "--duration", "4", "-q", "-o", dir.file("load.forktail")});
		INFO(loaded.out << loaded.err);
		REQUIRE(loaded.status == 0);
		recorder.stop();
		std::filesystem::copy_file(recorder.path(), dir.file("server.forktail"));
		const Result json = run({program("forktail"), "explain", "--json", dir.path()});
		REQUIRE(json.status == 0);
		const Json account = parse_json(json.out)["account"];
		CheckCommands(redis, read_log(dir.file("load.forktail")), account["server_commands"]);
		CheckThreads(redis, kind == "redis-server", account["server_threads"]);
		const Result text = run({program("forktail"), "explain", "--all", dir.path()});
		INFO(text.out);
		CHECK(contains(text.out, "Commands as the server counted them"));
		CHECK(contains(text.out, "Threads as the server counted them"));
		// The event loop that the server counts is its main thread's.
		const size_t thread = text.out.find("(" + std::to_string(redis.pid()) + "): ");
		const size_t count = text.out.find("By its own count");
		CHECK((count == std::string::npos) == (kind == "redis"));
		if (count != std::string::npos) {
			REQUIRE(thread < count);
			CHECK(!contains(text.out.substr(thread, count - thread), "Server thread"));
		}
	}
}
