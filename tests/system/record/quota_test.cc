// SPDX-License-Identifier: MIT
// CPU quotas on a real redis-server: throttled time is distinguished from waits for a CPU, and checked
// against the kernel's own count.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/cgroup.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

uint32_t tid(const Redis &redis)
{
	return static_cast<uint32_t>(redis.pid());
}

uint64_t throttled_ns(const Recorded &r, uint32_t tid)
{
	uint64_t sum = 0;
	for (const ft_span &s : r.spans)
		if (s.tid == tid && (s.flags & FT_SPAN_THROTTLED))
			sum += s.runnable_ns;
	for (const ft_tally &t : r.tallies)
		if (t.tid == tid && t.owner == FT_CPU_QUOTA)
			sum += t.total_ns;
	return sum;
}

// Keeps the server busy until it is ended.
std::vector<std::string> load(const Redis &redis, const std::vector<std::string> &before = {})
{
	std::vector<std::string> argv = before;
	for (const std::string &word :
	     {std::string("redis-benchmark"), std::string("-s"), redis.socket(), std::string("-n"),
	      std::string("100000000"), std::string("-P"), std::string("16"), std::string("-t"),
	      std::string("set,get"), std::string("-q")})
		argv.push_back(word);
	return argv;
}

// A server in a group with a quota, on a CPU that a hog uses too.
struct Hogged {
	Redis redis;
	Process hog;

	Hogged(CpuCgroup &group, uint64_t quota_us)
	    : hog({"sh", "-c", "exec taskset -c 0 sh -c 'while :; do :; done'"})
	{
		run({"taskset", "-a", "-cp", "0", std::to_string(redis.pid())});
		REQUIRE(group.set_quota(quota_us, 100000));
		REQUIRE(group.add(redis.pid()));
		sleep_for(Seconds(0.5)); // the hog is taskset before it is sh
	}
};

} // namespace

TEST_CASE("a cgroup that has used up its quota is cpu-quota, for as long as the kernel says")
{
	REQUIRE(root());
	CpuCgroup group;
	if (!group.usable()) {
		WARN("SKIPPED: cannot make a cgroup with the CPU controller here");
		return;
	}
	Redis redis;
	REQUIRE(group.set_quota(20000, 100000));
	REQUIRE(group.add(redis.pid()));
	Recorder recorder(redis.pid());
	const uint64_t before_ns = group.throttled_ns();
	{
		Process client(load(redis));
		REQUIRE(eventually([&] { return group.throttles() >= 10; }, Seconds(60)));
	}
	// The last throttling ends, and remaining requests are answered.
	redis.command({"PING"});
	const uint64_t kernel_ns = group.throttled_ns() - before_ns;
	const std::string path = recorder.path();
	const Recorded r = recorder.stop();
	const uint64_t ours_ns = throttled_ns(r, tid(redis));
	INFO("the kernel counted " << kernel_ns << " ns, the recording has " << ours_ns << " ns");
	CHECK(ours_ns >= kernel_ns - kernel_ns / 10);
	CHECK(ours_ns <= kernel_ns + kernel_ns / 10);

	bool noted = false;
	for (const std::string &note : r.notes)
		noted |= note.find("\"cpu-quota\"") != std::string::npos &&
			 note.find("\"cgroup\":\"" + group.name() + "\"") != std::string::npos &&
			 note.find("\"quota_us\":20000,\"period_us\":100000") != std::string::npos;
	CHECK(noted);
	const Result explained = run({program("forktail"), "explain", path, "--all"});
	INFO(explained.out << explained.err);
	CHECK(explained.out.find("the cgroup " + group.name() +
				 " had used up its CPU quota (20.0 ms of every 100 ms)") !=
	      std::string::npos);
}

TEST_CASE("a hog on the server's CPU is run-queue, with a quota that is not used up")
{
	REQUIRE(root());
	CpuCgroup group;
	if (!group.usable()) {
		WARN("SKIPPED: cannot make a cgroup with the CPU controller here");
		return;
	}
	Hogged server(group, 1000000);
	Redis &redis = server.redis;
	Recorder recorder(redis.pid());
	// Both want the CPU all of a second.
	redis.command({"EVAL",
		       "local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end "
		       "local till = now() + 1 while now() < till do end",
		       "0"});
	CHECK(group.throttles() == 0);
	const Recorded r = recorder.stop();
	CHECK(throttled_ns(r, tid(redis)) == 0);
	// The hog takes its half of that second.
	const uint64_t runnable_ns = r.owned_ns(tid(redis), FT_RUN_QUEUE);
	INFO("waited for a CPU for " << runnable_ns << " ns");
	CHECK(runnable_ns > 100'000'000);
}

TEST_CASE("a quota and a hog at the same time are both reported")
{
	REQUIRE(root());
	CpuCgroup group;
	if (!group.usable()) {
		WARN("SKIPPED: cannot make a cgroup with the CPU controller here");
		return;
	}
	Hogged server(group, 20000);
	Redis &redis = server.redis;
	Recorder recorder(redis.pid());
	const uint64_t before_ns = group.throttled_ns();
	{
		Process client(load(redis, {"taskset", "-c", "1"}));
		REQUIRE(eventually([&] { return group.throttles() >= 10; }, Seconds(60)));
	}
	redis.command({"PING"});
	const uint64_t kernel_ns = group.throttled_ns() - before_ns;
	const Recorded r = recorder.stop();
	const uint64_t ours_ns = throttled_ns(r, tid(redis));
	INFO("the kernel counted " << kernel_ns << " ns, the recording has " << ours_ns << " ns");
	CHECK(ours_ns >= kernel_ns - kernel_ns / 10);
	CHECK(ours_ns <= kernel_ns + kernel_ns / 10);
	const ft_span *held = r.longest([&](const ft_span &x) {
		return x.tid == tid(redis) && !(x.flags & FT_SPAN_THROTTLED) &&
		       r.held_ns(x, static_cast<uint32_t>(server.hog.pid())) > x.runnable_ns / 2;
	});
	CHECK(held);
}
