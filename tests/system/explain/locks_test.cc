// SPDX-License-Identifier: MIT
// A server whose main thread waits for a lock that another of its threads holds. Requests are explained by
// the holder's activity, at that thread, for as long as a clock in the server measures.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

#include "analysis/source.h"
#include "analysis/timeline.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr double kMs = 1e6;

// A redis-server with a keeper (lock_keeper.c), under an even load with a disturbance.
struct LockedServer {
	TempDir dir;
	std::string clock = dir.file("clock");
	std::unique_ptr<Redis> redis;
	Json explanation;
	std::string sentences;
	double waited_ms = 0; // the main thread, by the server's clock

	LockedServer(const std::string &how, int ms)
	{
		std::ofstream(clock, std::ios::binary) << std::string(16, '\0');
		redis = std::make_unique<Redis>(
		    RedisOptions{.tcp = false,
				 .config = {},
				 .environment = {"LD_PRELOAD=" FORKTAIL_LOCK_KEEPER, "FORKTAIL_KEEP=" + how,
						 "FORKTAIL_KEEP_MS=" + std::to_string(ms),
						 "FORKTAIL_KEEP_CLOCK=" + clock}});
	}
	uint64_t Shown(int n) const
	{
		uint64_t values[2] = {};
		std::ifstream(clock, std::ios::binary).read(reinterpret_cast<char *>(values), sizeof values);
		return values[n];
	}
	pid_t Keeper() const { return static_cast<pid_t>(Shown(0)); }
	template <class Do> void During(Do something)
	{
		{
			Recorder recorder(redis->pid());
			const uint64_t before = Shown(1);
			Process load({program("forktail-load"), "-s", redis->socket(), "-t", "get", "--rate",
				      "200", "--duration", "3s", "-c", "2", "--no-observer", "-o",
				      dir.file("load.forktail")});
			something();
			REQUIRE(load.wait(Seconds(60)) == 0);
			waited_ms = static_cast<double>(Shown(1) - before) / kMs;
			recorder.stop();
			std::filesystem::copy_file(recorder.path(), dir.file("server.forktail"));
		}
		const Result explained =
		    run({program("forktail"), "explain", dir.path(), "--slow", "2ms", "--json"});
		INFO(explained.err);
		REQUIRE(explained.status == 0);
		explanation = parse_json(explained.out);
		for (const Json &e : explanation["episodes"])
			for (const Json &sentence : e["evidence"])
				sentences += sentence.get<std::string>() + "\n";
	}
	// A cause's part of the slow requests' time, at the keeper or elsewhere, in ms.
	double Time(const std::string &cause, bool at_keeper) const
	{
		double ns = 0;
		for (const Json &hop : explanation["hops"])
			for (const Json &c : hop["causes"])
				if (c["cause"] == cause && (hop["name"].get<std::string>().find("keeper") !=
							    std::string::npos) == at_keeper)
					ns += c["time_ns"].get<double>();
		return ns / kMs;
	}
	// How long the main thread waited for the keeper's activity, and then for a CPU, in ms.
	double Resolved() const
	{
		forktail::analysis::Run run;
		std::string error;
		REQUIRE(forktail::analysis::LoadRun(dir.path(), &run, &error));
		forktail::analysis::ThreadTimelines threads(run);
		uint64_t ns = 0;
		for (uint32_t i = 0; i < run.threads.size(); i++) {
			const forktail::analysis::Thread &t = run.threads[i];
			if (t.tid != static_cast<uint32_t>(redis->pid()))
				continue;
			for (const forktail::analysis::Foreign &f :
			     forktail::analysis::LockForeign(&threads, threads.Of(i)))
				if (run.threads[f.thread].tid == static_cast<uint32_t>(Keeper()))
					ns += f.end_ns - f.start_ns;
			for (const forktail::analysis::LockWait &wait : threads.LockWaitsOf(i))
				ns += run.spans[wait.span].runnable_ns;
		}
		return static_cast<double>(ns) / kMs;
	}
	bool Says(const std::string &text) const { return sentences.find(text) != std::string::npos; }
};

} // namespace

TEST_CASE("a lock that another thread holds while it computes is lock-wait at that thread")
{
	REQUIRE(root());
	LockedServer server("code", 15);
	server.During([] {});
	INFO(server.explanation["hops"].dump(1)
	     << server.sentences << "waited " << server.waited_ms << " ms");
	CHECK(server.waited_ms > 100);
	CHECK(server.Time("lock-wait", true) > 20 * server.Time("lock-wait", false));
	CHECK(std::abs(server.Resolved() - server.waited_ms) < 1 + 0.02 * server.waited_ms);
	CHECK(server.Says("redis-server (" + std::to_string(server.redis->pid()) + ") waited "));
	CHECK(server.Says(" for a lock that this thread held; meanwhile this thread was in keep_computing"));
}

TEST_CASE("a holder's wait in the kernel is the cause of the lock wait")
{
	REQUIRE(root());
	LockedServer server("pipe", 15);
	server.During([] {});
	INFO(server.explanation["hops"].dump(1)
	     << server.sentences << "waited " << server.waited_ms << " ms");
	CHECK(server.waited_ms > 100);
	CHECK(std::abs(server.Resolved() - server.waited_ms) < 1 + 0.02 * server.waited_ms);
	CHECK(server.Time("syscall", true) > 0.8 * server.waited_ms);
	CHECK(server.Time("lock-wait", false) < 0.1 * server.waited_ms);
	CHECK(server.Says("keeper: blocked in read() for "));
	CHECK(server.Says(" for a lock that this thread held"));
}

TEST_CASE("a holder that a debugger stops makes the lock wait the debugger's")
{
	REQUIRE(root());
	LockedServer server("code", 60);
	server.During([&] {
		Process stopper({FORKTAIL_TRACER, std::to_string(server.Keeper()), "20", "40"});
		REQUIRE(stopper.wait(Seconds(30)) == 0);
	});
	INFO(server.explanation["hops"].dump(1)
	     << server.sentences << "waited " << server.waited_ms << " ms");
	CHECK(server.Time("ptrace", true) > 50);
	CHECK(server.Time("ptrace", false) == 0);
	CHECK(server.Time("lock-wait", true) > 50);
	CHECK(server.Says("keeper: was stopped "));
}
