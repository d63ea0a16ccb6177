// SPDX-License-Identifier: MIT
// A server with a thread that holds its process' mmap lock: the main thread's wait for it is mmap-lock.
#include <cstring>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

// Nanoseconds that the main thread has spent in mmap so far (mmap_lock_holder.c).
uint64_t InMmap(const std::string &path)
{
	uint64_t ns = 0;
	std::ifstream(path, std::ios::binary).read(reinterpret_cast<char *>(&ns), sizeof ns);
	return ns;
}

uint64_t TimeOf(const Json &explanation, const std::string &cause)
{
	for (const Json &c : explanation["causes"])
		if (c["cause"] == cause)
			return c["direct_ns"];
	return 0;
}

} // namespace

TEST_CASE("waiting for the process' mmap lock is mmap-lock")
{
	REQUIRE(root());
	TempDir dir;
	const std::string clock = dir.file("clock");
	std::ofstream(clock, std::ios::binary) << std::string(8, '\0');
	Redis redis({.tcp = false,
		     .config = {},
		     .environment = {"LD_PRELOAD=" FORKTAIL_MMAP_LOCK_HOLDER, "FORKTAIL_HOLD_MB=128",
				     "FORKTAIL_HOLD_CLOCK=" + clock}});
	Recorder recorder(redis.pid());
	const uint64_t before_ns = InMmap(clock);
	// Each value is a new mapping. Without a holder that takes microseconds.
	for (int i = 0; i < 10; i++)
		redis.command({"SETRANGE", "big" + std::to_string(i), std::to_string(24 << 20), "x"});
	redis.command({"PING"}); // the iteration that waited has ended
	const uint64_t waited_ns = InMmap(clock) - before_ns;
	const std::string path = recorder.path();
	recorder.stop();

	const Result explained = run({program("forktail"), "explain", path, "--json"});
	INFO(explained.err);
	REQUIRE(explained.status == 0);
	const Json j = parse_json(explained.out);
	const uint64_t lock_ns = TimeOf(j, "mmap-lock"), queue_ns = TimeOf(j, "run-queue");
	std::string all;
	bool told = false;
	for (const Json &e : j["episodes"])
		for (const Json &sentence : e["evidence"]) {
			const std::string text = sentence;
			all += text + "\n";
			told |= text.find("for its process' mmap lock, in mmap()") != std::string::npos;
		}
	INFO(all);
	UNSCOPED_INFO("in mmap " << waited_ns << " ns, mmap-lock " << lock_ns << " ns, run-queue " << queue_ns
				 << " ns, syscall " << TimeOf(j, "syscall") << " ns");
	CHECK(told);
	CHECK(waited_ns > 50'000'000);
	// In mmap it waits for the lock and then for a CPU, and does almost nothing else.
	CHECK(static_cast<double>(lock_ns) < 1.05 * static_cast<double>(waited_ns));
	CHECK(static_cast<double>(lock_ns + queue_ns) > 0.9 * static_cast<double>(waited_ns));
	CHECK(lock_ns > 20 * TimeOf(j, "syscall"));
}
