// SPDX-License-Identifier: MIT
// The recorder and its disk: a hung disk delays only the file, and what a killed recorder leaves. Also its
// CPUs and priority next to a pinned server.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/support/standing_disk.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

std::unique_ptr<Process> load(const Redis &redis)
{
	return std::make_unique<Process>(std::vector<std::string>{"redis-benchmark", "-s", redis.socket(),
								  "-n", "100000000", "-t", "set", "-q"});
}

uint64_t last_tally_ns(const Recorded &r, uint32_t tid)
{
	uint64_t last = 0;
	for (const ft_tally &t : r.tallies)
		last = std::max(last, t.tid == tid ? t.end_ns : 0);
	return last;
}

size_t resident_bytes(pid_t pid)
{
	size_t size = 0, pages = 0;
	std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> size >> pages;
	return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::string allowed_cpus(pid_t pid)
{
	std::ifstream in("/proc/" + std::to_string(pid) + "/status");
	for (std::string line; std::getline(in, line);)
		if (line.rfind("Cpus_allowed_list:", 0) == 0)
			return line.substr(line.find_last_of(" \t") + 1);
	return "";
}

// Helpers are children of a child.
std::vector<pid_t> with_helpers(pid_t pid)
{
	std::vector<pid_t> all = {pid};
	for (size_t i = 0; i < all.size(); i++) {
		const std::string task = std::to_string(all[i]);
		std::ifstream in("/proc/" + task + "/task/" + task + "/children");
		for (pid_t child; in >> child;)
			all.push_back(child);
	}
	return all;
}

} // namespace

TEST_CASE("a hung disk loses events once the queue is full, and none before")
{
	REQUIRE(root());
	StandingDisk disk;
	if (!disk.mounted())
		return;
	Redis redis;
	const uint32_t tid = static_cast<uint32_t>(redis.pid());
	// Each wait of the server is a span: at least 80 bytes per request.
	Recorder recorder(redis.pid(), {"-o", disk.file("r"), "--min-span", "1us"});
	const auto busy = load(redis);
	sleep_for(Seconds(1));
	REQUIRE(disk.stand(true));
	sleep_for(Seconds(0.5));
	REQUIRE(disk.stand(false)); // the queue has this much room
	sleep_for(Seconds(1));
	const uint64_t stood_ns = ft_now_ns();
	REQUIRE(disk.stand(true));
	// Its memory shows how much waits for the disk: all but the last blocks of the maximum.
	const size_t before = resident_bytes(recorder.process().pid());
	CHECK(eventually([&] { return resident_bytes(recorder.process().pid()) > before + (15 << 20); },
			 Seconds(200)));
	sleep_for(Seconds(1.5));
	const size_t after = resident_bytes(recorder.process().pid());
	CHECK(after < before + (24 << 20)); // half as much again for names and similar data
	REQUIRE(disk.stand(false));
	const uint64_t went_on_ns = ft_now_ns();
	sleep_for(Seconds(1));
	busy->signal(SIGKILL);
	recorder.process().signal(SIGINT);
	REQUIRE(recorder.process().wait(Seconds(60)) == 0);
	const Recorded r = read_recording(disk.file("r"));
	INFO(recorder.process().err());
	CHECK(r.error.empty());
	CHECK(!r.damage.no_trailer);
	CHECK(r.damage.blocks_missing == 0);
	uint64_t dropped = 0;
	for (const ft_drop &d : r.drops) {
		CHECK(d.source == FT_DROP_DISK); // the ring buffer was emptied all the time
		// Lost events may have begun before, such as an idle thread's wait.
		CHECK(d.start_ns <= d.end_ns);
		CHECK(d.end_ns > stood_ns);
		CHECK(d.end_ns < went_on_ns + 2'000'000'000);
		dropped += d.count;
	}
	CHECK(dropped > 10'000);
	CHECK(r.summary.find("\"dropped\":" + std::to_string(dropped)) != std::string::npos);
	CHECK(recorder.process().err().find(std::to_string(dropped) + " events DROPPED") !=
	      std::string::npos);
	// Thread records and names are there nevertheless.
	CHECK(r.role("redis-server"));
	for (const ft_span &s : r.spans)
		if (s.detail)
			REQUIRE(r.details.count(s.detail));
	CHECK(last_tally_ns(r, tid) > went_on_ns);
	// Missing events are missing as time, within the intervals of the drops.
	uint64_t wall_ns = 0, hole_ns = 0, until = 0;
	for (const auto &[key, t] : r.threads)
		wall_ns += t.tid == tid ? t.end_ns - t.start_ns : 0;
	auto holes = r.drops;
	std::sort(holes.begin(), holes.end(), [](auto &a, auto &b) { return a.start_ns < b.start_ns; });
	for (const ft_drop &d : holes) {
		if (d.detail != FT_BLOCK_SPAN && d.detail != FT_BLOCK_TALLY)
			continue;
		hole_ns += d.end_ns > until ? d.end_ns - std::max(d.start_ns, until) : 0;
		until = std::max(until, d.end_ns);
	}
	CHECK(r.accounted_ns(tid) < wall_ns);
	CHECK(r.accounted_ns(tid) + hole_ns >= wall_ns);

	const Result told = run({program("forktail"), "explain", disk.file("r"), "--all"});
	INFO(told.out << told.err);
	CHECK(told.out.find("(the recorder's disk was too slow)") != std::string::npos);
}

TEST_CASE("a killed recorder loses less than a second")
{
	REQUIRE(root());
	Redis redis;
	const uint32_t tid = static_cast<uint32_t>(redis.pid());
	Recorder recorder(redis.pid());
	const auto busy = load(redis);
	sleep_for(Seconds(2.2));
	const uint64_t killed_ns = ft_now_ns();
	recorder.process().signal(SIGKILL);
	recorder.process().wait(Seconds(30));
	const Recorded r = read_recording(recorder.path());
	CHECK(r.damage.no_trailer);
	CHECK(r.damage.blocks_missing == 0);
	CHECK(r.dropped() == 0);
	INFO((killed_ns - last_tally_ns(r, tid)) / 1'000'000 << " ms");
	CHECK(last_tally_ns(r, tid) + 1'000'000'000 > killed_ns);
	CHECK(r.samples.back().t_ns + 1'000'000'000 > killed_ns);
}

TEST_CASE("with a pinned server the recorder avoids its CPUs, and otherwise lowers its own priority")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	Redis redis;
	const std::string pid = std::to_string(redis.pid());
	const std::string all = allowed_cpus(getpid());
	{
		Recorder recorder(redis.pid());
		for (const pid_t p : with_helpers(recorder.process().pid()))
			CHECK(allowed_cpus(p) == all);
		for (const auto &task : std::filesystem::directory_iterator(
			 "/proc/" + std::to_string(recorder.process().pid()) + "/task")) {
			const pid_t thread = std::stoi(task.path().filename());
			CHECK(sched_getscheduler(thread) == SCHED_BATCH);
			CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(thread)) == 10);
		}
		recorder.stop();
	}
	REQUIRE(run({"taskset", "-a", "-cp", "0", pid}).status == 0);
	Recorder recorder(redis.pid());
	const auto everyone = with_helpers(recorder.process().pid());
	CHECK(everyone.size() >= 4);
	for (const pid_t p : everyone) {
		INFO(p << ": " << allowed_cpus(p) << " of " << all);
		const std::string its = allowed_cpus(p);
		CHECK(!its.empty());
		CHECK(its[0] != '0');
	}
	recorder.stop();
}
