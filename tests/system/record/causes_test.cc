// SPDX-License-Identifier: MIT
// Each cause that can delay a thread is made on a real redis-server and must be in the recording under its
// own name. The truth suite does this with times and scores; here it only shows that each probe works.
#include <csignal>
#include <cstring>
#include <fstream>
#include <sched.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

std::string pin(pid_t pid, int cpu)
{
	return run({"taskset", "-a", "-cp", std::to_string(cpu), std::to_string(pid)}).err;
}

uint32_t tid(const Redis &redis)
{
	return static_cast<uint32_t>(redis.pid());
}

} // namespace

TEST_CASE("a stopped server is stopped, and not blocked in something")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.3));
	redis.process().signal(SIGCONT);
	redis.command({"PING"});
	const Recorded r = recorder.stop();
	const ft_span *s =
	    r.longest([&](const ft_span &x) { return x.owner == FT_STOPPED && x.tid == tid(redis); });
	REQUIRE(s);
	CHECK(s->blocked_ns >= 290000000);
	CHECK(s->blocked_ns < 2000000000);
}

TEST_CASE("a wait ends when the thread is woken, not when it runs")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	Redis redis;
	const std::string trace = "/sys/kernel/tracing/instances/forktail-" + std::to_string(getpid());
	if (run({"mkdir", trace}).status != 0) {
		WARN("SKIPPED: cannot make an instance of tracefs here");
		return;
	}
	auto set = [&](const std::string &file, const std::string &text) {
		std::ofstream(trace + "/" + file) << text << std::flush;
	};
	set("trace_clock", "mono");
	for (const char *event : {"sched_waking", "sched_wakeup"}) {
		set(std::string("events/sched/") + event + "/filter", "pid==" + std::to_string(redis.pid()));
		set(std::string("events/sched/") + event + "/enable", "1");
	}
	Recorder recorder(redis.pid());
	for (int i = 0; i < 300; i++) {
		redis.command({"PING"});
		sleep_for(Seconds(0.001));
	}
	const Recorded r = recorder.stop();
	std::map<uint64_t, uint64_t> wakeups; // from its begin to its end, in us
	std::ifstream in(trace + "/trace");
	uint64_t begin_us = 0;
	for (std::string line; std::getline(in, line);) {
		unsigned long long s = 0, us = 0;
		char event[32] = "";
		const size_t at = line.find("] ");
		if (at == std::string::npos ||
		    std::sscanf(line.c_str() + at, "] %*s %llu.%llu: %31[a-z_]", &s, &us, event) != 3)
			continue;
		if (std::string(event) == "sched_waking")
			begin_us = s * 1000000 + us;
		else if (begin_us)
			wakeups[begin_us] = s * 1000000 + us;
	}
	in.close(); // an instance that is being read cannot be removed
	CHECK(run({"rmdir", trace}).status == 0);
	int begins = 0, ends = 0;
	for (const ft_span &s : r.spans) {
		const uint64_t wake_us = (s.start_ns + s.blocked_ns) / 1000;
		if (s.tid != tid(redis) || !s.off_cpu || s.owner != FT_IDLE)
			continue;
		const auto next = wakeups.upper_bound(wake_us + 1);
		if (next == wakeups.begin())
			continue;
		const auto &[from_us, to_us] = *std::prev(next);
		if (to_us < from_us + 3 || to_us > (s.start_ns + s.duration_ns) / 1000 + 1)
			continue; // at once, or another one's
		(wake_us - from_us < to_us - wake_us || wake_us < from_us ? begins : ends)++;
	}
	INFO(wakeups.size() << " wakeups, at the begin of one " << begins << ", at its end " << ends);
	REQUIRE(wakeups.size() > 100);
	// The hypervisor may take a CPU between the tracing's reading of the clock and ours.
	CHECK(begins > 2 * ends);
}

TEST_CASE("DEBUG SLEEP is sleep, with its system call and kernel stack")
{
	REQUIRE(root());
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	Recorder recorder(redis.pid());
	redis.command({"DEBUG", "SLEEP", "0.2"});
	redis.command({"PING"}); // the iteration that slept has ended
	const Recorded r = recorder.stop();
	const ft_span *s =
	    r.longest([&](const ft_span &x) { return x.owner == FT_SLEEP && x.tid == tid(redis); });
	REQUIRE(s);
	CHECK(s->blocked_ns >= 199000000);
	CHECK((s->syscall == 35 || s->syscall == 230)); // nanosleep, clock_nanosleep
	CHECK(r.detail(*s).find("nanosleep") != std::string::npos);
	const ft_span *iteration =
	    r.longest([&](const ft_span &x) { return x.owner == FT_ITERATION && x.tid == tid(redis); });
	REQUIRE(iteration);
	CHECK(iteration->duration_ns >= 199000000);
	CHECK(iteration->start_ns <= s->start_ns);
}

TEST_CASE("a run-queue wait names the CPU holder")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	Redis redis;
	pin(redis.pid(), 0);
	// It is taskset and nice before it is sh. Waits should have its final name.
	Process hog({"sh", "-c", "exec taskset -c 0 nice -n -10 sh -c 'while :; do :; done'"});
	sleep_for(Seconds(0.5));
	Recorder recorder(redis.pid());
	Process load({"taskset", "-c", "1", "redis-benchmark", "-s", redis.socket(), "-n", "30000", "-t",
		      "set,get", "-q"});
	load.wait(Seconds(60));
	const Recorded r = recorder.stop();
	// Not the longest sleep, after which it waited briefly.
	const ft_span *s = r.longest([&](const ft_span &x) {
		return x.off_cpu && x.tid == tid(redis) && x.runnable_ns > x.blocked_ns &&
		       r.held_ns(x, static_cast<uint32_t>(hog.pid())) > x.runnable_ns / 2;
	});
	REQUIRE(s);
	CHECK(s->runnable_ns > 1000000);
	CHECK(r.held_ns(*s, static_cast<uint32_t>(hog.pid()), "sh") > 1000000); // so long, with its name
}

TEST_CASE("appendfsync always is fsync on the main thread, blocked")
{
	REQUIRE(root());
	Redis redis({.tcp = false, .config = {"--appendonly", "yes", "--appendfsync", "always"}});
	Recorder recorder(redis.pid());
	for (int i = 0; i < 50; i++)
		redis.command({"SET", "k" + std::to_string(i), "v"});
	const Recorded r = recorder.stop();
	CHECK(r.count(tid(redis), FT_FSYNC) >= 50);
}

TEST_CASE("a memory cgroup's limit is direct reclaim")
{
	REQUIRE(root());
	const std::string group = "/sys/fs/cgroup/memory/forktail-test-" + std::to_string(getpid());
	if (run({"mkdir", group}).status != 0) {
		WARN("SKIPPED: cannot make a memory cgroup (v1) here");
		return;
	}
	{
		Redis redis(
		    {.tcp = false, .config = {"--enable-debug-command", "yes", "--rdbcompression", "no"}});
		std::ofstream(group + "/memory.limit_in_bytes") << (32 << 20);
		std::ofstream(group + "/cgroup.procs") << redis.pid();
		Recorder recorder(redis.pid());
		// Data within the limit, and the snapshot's page cache beyond it: writing it has to reclaim
		// memory.
		redis.command({"DEBUG", "POPULATE", "30000", "key", "500"});
		for (int i = 0; i < 3; i++)
			redis.command({"SAVE"});
		const Recorded r = recorder.stop();
		CHECK(r.count(tid(redis), FT_RECLAIM) >= 1);
		CHECK(r.owned_ns(tid(redis), FT_RECLAIM) > 0);
		const Result explained = run({program("forktail"), "explain", recorder.path(), "--all"});
		INFO(explained.out << explained.err);
		CHECK(explained.out.find("the memory limit was reached by the cgroup /forktail-test-" +
					 std::to_string(getpid()) + " (") != std::string::npos);
	}
	eventually([&] { return run({"rmdir", group}).status == 0; }, Seconds(10));
}

TEST_CASE("what the server receives of its own sends over loopback is its own code, other softirqs have "
	  "their vector")
{
	REQUIRE(root());
	Redis redis({.tcp = true, .config = {}});
	Recorder recorder(redis.pid(), {"--min-span", "2us"});
	REQUIRE(run({"redis-benchmark", "-p", std::to_string(redis.port()), "-n", "50000", "-t", "get", "-q"})
		    .status == 0);
	const Recorded r = recorder.stop();
	const uint32_t softirqs = FT_SOFTIRQ, net_rx = 3;
	uint64_t others = 0;
	for (uint32_t v = 0; v < FT_SOFTIRQ_VECTORS; v++)
		others += v == net_rx ? 0 : r.count(tid(redis), static_cast<ft_owner>(softirqs + v));
	CHECK(others > 0);
	// There is one for each of 50,000 answers. After a hardware interrupt it may be for others' packets.
	CHECK(r.count(tid(redis), static_cast<ft_owner>(softirqs + net_rx)) < 10'000);
	CHECK(r.count(tid(redis), FT_HARDIRQ) > 0);
}

TEST_CASE("first touch is page-zero, a write after fork cow-copy, the program's text page-file")
{
	REQUIRE(root());
	Redis redis(
	    {.tcp = false, .config = {"--rdb-key-save-delay", "200", "--enable-debug-command", "yes"}});
	Recorder recorder(redis.pid());
	redis.command({"DEBUG", "POPULATE", "20000", "key", "3000"});
	redis.command({"BGSAVE"});
	REQUIRE(run({"redis-benchmark", "-s", redis.socket(), "-n", "20000", "-r", "20000", "-d", "3000",
		     "-t", "set", "-q"})
		    .status == 0);
	const Recorded r = recorder.stop();
	CHECK(r.count(tid(redis), FT_PAGE_ZERO) > 5000);
	CHECK(r.count(tid(redis), FT_COW_COPY) > 100);
	const ft_thread *child = r.role("snapshot child");
	REQUIRE(child);
	CHECK(r.count(child->tid, FT_PAGE_FILE) + r.count(tid(redis), FT_PAGE_FILE) >= 1);
}

TEST_CASE("a write that waits for the disk is file-write and names the file")
{
	REQUIRE(root());
	// A process that writes to the disk: its write() blocks for that each time. It has more to write than
	// a recorder needs to begin, however busy the machine is, and ends with the test.
	TempDir dir;
	if (!on_a_disk(dir.path())) {
		WARN("SKIPPED: temporary directories are not on a disk here");
		return;
	}
	Process writer(
	    {"dd", "if=/dev/zero", "of=" + dir.file("journal.aof"), "bs=64k", "count=20000", "oflag=dsync"});
	Recorder recorder(writer.pid());
	sleep_for(Seconds(0.5));
	const Recorded r = recorder.stop();
	const uint32_t id = static_cast<uint32_t>(writer.pid());
	// For the disk, not for a CPU after that: such a wait names the CPU holder.
	const ft_span *s = r.longest([&](const ft_span &x) {
		return x.owner == FT_FILE_WRITE && x.tid == id && x.off_cpu && x.blocked_ns > x.runnable_ns;
	});
	REQUIRE(s);
	CHECK(s->syscall == 1);
	CHECK(r.detail(*s).find("journal.aof") != std::string::npos);
	bool disk = false;
	for (const ft_io &io : r.io)
		disk |= io.write == 1;
	CHECK(disk);
}
