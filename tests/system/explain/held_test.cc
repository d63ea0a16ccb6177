// SPDX-License-Identifier: MIT
// Servers that cannot run while requests wait: frozen cgroups of both versions, and tracers. None of that
// time is idle, whatever the server was about to do.
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/freezer.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

// A run of a server under an even load, with a disturbance.
struct Watched {
	TempDir dir;
	Redis redis;
	Json explanation;
	std::string sentences;

	template <class Do> void during(Do something)
	{
		{
			Recorder recorder(redis.pid());
			Process load({program("forktail-load"), "-s", redis.socket(), "-t", "get", "--rate",
				      "1000", "--duration", "3s", "-c", "5", "-o",
				      dir.file("load.forktail")});
			sleep_for(Seconds(0.5));
			something();
			REQUIRE(load.wait(Seconds(60)) == 0);
			recorder.stop();
			std::filesystem::copy_file(recorder.path(), dir.file("server.forktail"));
		}
		const Result explained = run({program("forktail"), "explain", dir.path(), "--json"});
		INFO(explained.err);
		REQUIRE(explained.status == 0);
		explanation = parse_json(explained.out);
		for (const Json &e : explanation["episodes"])
			for (const Json &sentence : e["evidence"])
				sentences += sentence.get<std::string>() + "\n";
	}
	// A cause's share of the time of the requests that took 50 ms or more.
	double share(const std::string &cause) const
	{
		double its = 0, all = 0;
		for (const Json &e : explanation["episodes"]) {
			if (e["worst_ns"] < 50'000'000)
				continue;
			for (const Json &c : e["causes"]) {
				all += c["time_ns"].get<double>();
				its += c["cause"] == cause ? c["time_ns"].get<double>() : 0;
			}
		}
		return all > 0 ? its / all : 0;
	}
};

void check_frozen(int version)
{
	REQUIRE(root());
	Freezer group(version);
	if (!group.usable()) {
		WARN("SKIPPED: cannot make a cgroup with a freezer of version " << version << " here");
		return;
	}
	Watched watched; // its server ends first, because a group with members cannot be removed
	REQUIRE(group.add(watched.redis.pid()));
	watched.during([&] {
		for (int i = 0; i < 3; i++) {
			REQUIRE(group.freeze(true));
			sleep_for(Seconds(0.1));
			REQUIRE(group.freeze(false));
			sleep_for(Seconds(0.2));
		}
	});
	INFO(watched.sentences);
	CHECK(watched.share("frozen") >= 0.95);
	CHECK(watched.share("network") < 0.03);
	CHECK(watched.sentences.find("the server's cgroup " + group.name() +
				     " (container ffffffffffff) was frozen for ") != std::string::npos);
}

} // namespace

TEST_CASE("a server in a frozen cgroup of version 1 is frozen, not idle")
{
	check_frozen(1);
}

TEST_CASE("a server in a frozen cgroup of version 2 is frozen, not idle")
{
	check_frozen(2);
}

TEST_CASE("a server stopped by a debugger has that cause, with the number of stops")
{
	REQUIRE(root());
	Watched watched;
	pid_t tracer = 0;
	watched.during([&] {
		Process stopper({FORKTAIL_TRACER, std::to_string(watched.redis.pid()), "3", "100"});
		tracer = stopper.pid();
		REQUIRE(stopper.wait(Seconds(30)) == 0);
	});
	INFO(watched.sentences);
	CHECK(watched.share("ptrace") >= 0.95);
	CHECK(watched.share("network") < 0.03);
	CHECK(watched.sentences.find("was stopped 1 time by tracer (pid " + std::to_string(tracer) +
				     "), 1") != std::string::npos);
}

TEST_CASE("strace stops a server in every call, and all stops count")
{
	REQUIRE(root());
	if (run({"strace", "-V"}).status != 0) {
		WARN("SKIPPED: strace is not installed");
		return;
	}
	Redis redis;
	Recorder recorder(redis.pid());
	Process strace({"strace", "-o", "/dev/null", "-p", std::to_string(redis.pid())});
	REQUIRE(eventually([&] { return strace.err().find("attached") != std::string::npos; }));
	const uint32_t tid = static_cast<uint32_t>(redis.pid());
	for (int i = 0; i < 100; i++)
		redis.command({"PING"});
	const std::string path = recorder.path();
	const Recorded r = recorder.stop();
	// read, write and epoll_wait of each command, at their begin and at their end.
	CHECK(r.count(tid, FT_PTRACED) >= 600);
	CHECK(r.count(tid, FT_STOPPED) == 0);
	bool noted = false;
	for (const std::string &note : r.notes)
		noted |= note.find("\"tracer\",\"pid\":" + std::to_string(strace.pid()) +
				   ",\"comm\":\"strace\"") != std::string::npos;
	CHECK(noted);
}
