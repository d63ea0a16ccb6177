// SPDX-License-Identifier: MIT
// What is attached, and what is recorded without it: by default no system call is traced, so forks, vforks
// and the iterations of a loop that never waits are found in other ways.
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sched.h>
#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t ms = 1'000'000;

uint32_t tid(Redis &redis)
{
	return static_cast<uint32_t>(redis.pid());
}

bool has_program(const Recorded &r, const std::string &name)
{
	const auto manifest = parse_json(r.manifest);
	for (const auto &program : manifest["programs"])
		if (program == name)
			return true;
	return false;
}

// A Redis that always has work: its clients keep more requests outstanding than it answers in an iteration,
// and it has CPU 0 to itself. This test and everything that it starts are on CPU 1.
class Saturated
{
public:
	Saturated()
	{
		cpu_set_t second;
		CPU_ZERO(&second);
		CPU_SET(1, &second);
		sched_getaffinity(0, sizeof before_, &before_);
		sched_setaffinity(0, sizeof second, &second);
		REQUIRE(run({"taskset", "-a", "-cp", "0", std::to_string(redis.pid())}).status == 0);
		REQUIRE(run({"chrt", "-f", "-p", "10", std::to_string(redis.pid())}).status == 0);
		load = std::make_unique<Process>(
		    std::vector<std::string>{"redis-benchmark", "-s", redis.socket(), "-n", "100000000", "-c",
					     "20", "-P", "16", "-t", "get", "-q"});
		REQUIRE(
		    eventually([&] { return std::stod(redis.info("instantaneous_ops_per_sec")) > 1000; }));
	}
	~Saturated()
	{
		load->signal(SIGKILL);
		redis.process().signal(SIGKILL);
		sched_setaffinity(0, sizeof before_, &before_);
	}
	Redis redis;
	std::unique_ptr<Process> load;

private:
	cpu_set_t before_;
};

std::string comm_of(pid_t pid)
{
	std::string comm;
	std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
	std::getline(file, comm);
	return comm;
}

// In the recording's clock, CLOCK_MONOTONIC.
double now_s()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs a script for a time that is limited by the clock alone.
std::string busy_script(int for_ms)
{
	return "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end "
	       "local till, n = now() + " +
	       std::to_string(for_ms) + ", 0 while now() < till do n = n + 1 end return n";
}

} // namespace

TEST_CASE("system calls have programs only on request, interrupts not with --light")
{
	REQUIRE(root());
	Redis redis;
	const auto record = [&](const std::vector<std::string> &how) {
		Recorder recorder(redis.pid(), how);
		REQUIRE(
		    run({"redis-benchmark", "-s", redis.socket(), "-n", "50000", "-t", "get", "-q"}).status ==
		    0);
		return recorder.stop();
	};
	const Recorded usual = record({});
	CHECK_FALSE(has_program(usual, "enter_epoll_wait"));
	CHECK_FALSE(has_program(usual, "enter_close"));
	CHECK(has_program(usual, "softirq_entry"));
	CHECK(usual.count(tid(redis), FT_HARDIRQ) > 0);
	const Recorded light = record({"--light"});
	CHECK_FALSE(has_program(light, "softirq_entry"));
	CHECK_FALSE(has_program(light, "local_timer_entry"));
	CHECK(has_program(light, "sched_switch"));
	CHECK(light.count(tid(redis), FT_HARDIRQ) == 0);
	CHECK(light.manifest.find("--light was given") != std::string::npos);
}

TEST_CASE("CPU samples read counters where there are any, and software events on request")
{
	REQUIRE(root());
	Redis redis;
	const auto record = [&](const std::vector<std::string> &how, std::string *path = nullptr) {
		Recorder recorder(redis.pid(), how);
		// Touches new memory, and then does not.
		redis.command(
		    {"EVAL", "for i = 1, 200000 do redis.call('SET', i, string.rep('x', 500)) end", "0"});
		redis.command({"EVAL", busy_script(300), "0"});
		redis.command({"FLUSHALL"});
		const Recorded r = recorder.stop();
		if (path)
			*path = run({program("forktail"), "explain", "--json", recorder.path()}).out;
		return r;
	};
	std::string explained;
	const Recorded software = record({"--counters", "software"}, &explained);
	CHECK(parse_json(software.manifest)["counters"] == "software");
	uint64_t ns = 0, cycles = 0, faults = 0, of_script_ns = 0;
	for (const ft_counters &c : software.counters) {
		CHECK(c.tid == tid(redis));
		CHECK((c.flags & FT_COUNTED_SOFTWARE) != 0);
		CHECK(c.cache_misses == 0); // context switches: the thread kept its CPU
		ns += c.duration_ns;
		cycles += c.cycles;
		faults += c.instructions;
		of_script_ns += c.instructions ? 0 : c.duration_ns;
	}
	CHECK(std::abs(static_cast<double>(cycles) - static_cast<double>(ns)) <
	      0.01 * static_cast<double>(ns));
	CHECK(faults > 10'000); // 100 MB in pages
	CHECK(of_script_ns > 100 * ms);
	const auto counters = parse_json(explained)["account"]["threads"][0]["counters"];
	CHECK(counters["software"] == true);
	CHECK(counters["ns"] == ns);
	CHECK(counters["instructions"] == faults);
	const Recorded none = record({"--counters", "none"});
	CHECK(none.counters.empty());
	CHECK(parse_json(none.manifest)["counters"] == "none");
	// Without a PMU a recording has no counters, and lacks nothing for that. With one, doctor says so.
	const Recorded usual = record({});
	const bool pmu = run({program("forktail-record"), "--doctor"}).out.find("yes  hardware counters") !=
			 std::string::npos;
	CHECK(parse_json(usual.manifest)["counters"] == (pmu ? "hardware" : "none"));
	CHECK(usual.counters.empty() != pmu);
	CHECK(usual.manifest.find("PMU") == std::string::npos);
}

TEST_CASE("a vfork is a fork, and so is the wait for its child")
{
	REQUIRE(root());
	TempDir dir;
	const std::string fifo = dir.file("line");
	REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
	Process vforker({"sh", "-c", "exec '" + std::string(FORKTAIL_VFORKER) + "' 30 <>'" + fifo + "'"});
	REQUIRE(eventually([&] { return comm_of(vforker.pid()) == "vforker"; }));
	Recorder recorder(vforker.pid());
	REQUIRE(run({"sh", "-c", "echo >'" + fifo + "'"}).status == 0);
	sleep_for(Seconds(0.3));
	const Recorded r = recorder.stop();
	const auto self = static_cast<uint32_t>(vforker.pid());
	const ft_span *wait =
	    r.longest([&](const ft_span &s) { return s.tid == self && s.off_cpu && s.owner == FT_FORK; });
	REQUIRE(wait);
	CHECK(wait->blocked_ns >= 29 * ms);
	CHECK(r.accounted_ns(self) > 0);
}

TEST_CASE("a stall in a loop that never waits is one iteration, to the precision of samples")
{
	REQUIRE(root());
	Saturated server;
	Recorder recorder(server.redis.pid());
	sleep_for(Seconds(0.5));
	const double began = now_s();
	// So long that the recorder, which raises the sampling rate, gets some of a saturated CPU meanwhile.
	REQUIRE(run({"redis-cli", "-s", server.redis.socket(), "EVAL", busy_script(600), "0"}).status == 0);
	const double ended = now_s();
	sleep_for(Seconds(0.5));
	const Recorded r = recorder.stop();
	const ft_span *iteration = r.longest([&](const ft_span &s) { return s.owner == FT_ITERATION; });
	REQUIRE(iteration);
	const double from = static_cast<double>(iteration->start_ns) * 1e-9;
	const double to = static_cast<double>(iteration->start_ns + iteration->duration_ns) * 1e-9;
	INFO("iteration from " << from << " to " << to << ", script between " << began << " and " << ended);
	CHECK(from >= began - 0.005);
	CHECK(to <= ended + 0.005);
	CHECK(iteration->duration_ns >= 580 * ms);

	// Once it was found to be long it was sampled more often, and the samples represent the time it ran.
	uint64_t ran_ns = iteration->duration_ns;
	for (const ft_span &s : r.spans)
		if (s.tid == iteration->tid && s.off_cpu && s.start_ns >= iteration->start_ns &&
		    s.start_ns + s.duration_ns <= iteration->start_ns + iteration->duration_ns)
			ran_ns -= s.duration_ns;
	uint64_t fast = 0, slow = 0, stands_for_ns = 0;
	for (const ft_cpu_sample &s : r.cpu_samples) {
		(s.period < 32 ? fast : slow) += 1; // 2 ms
		CHECK(s.period % 16 != 0);	    // in step with a timer of whole milliseconds
		if (s.t_ns >= iteration->start_ns && s.t_ns < iteration->start_ns + iteration->duration_ns)
			stands_for_ns += s.period * ms / 16;
	}
	CHECK(fast >= 100);
	CHECK(slow >= 50);
	CHECK(static_cast<double>(stands_for_ns) > 0.8 * static_cast<double>(ran_ns));
	CHECK(static_cast<double>(stands_for_ns) < 1.2 * static_cast<double>(ran_ns));
}

TEST_CASE("with --exact each iteration is known, and how many connections were accepted in it")
{
	REQUIRE(root());
	Saturated server;
	Recorder recorder(server.redis.pid(), {"--exact", "--min-span", "1us"});
	sleep_for(Seconds(0.2)); // what is accepted in the iteration that began before is not all known
	for (int i = 0; i < 5; i++)
		REQUIRE(run({"redis-cli", "-s", server.redis.socket(), "PING"}).out == "PONG\n");
	sleep_for(Seconds(1));
	const Recorded r = recorder.stop();
	uint64_t iterations = 0, accepted = 0, sampled = 0;
	for (const ft_span &s : r.spans) {
		if (s.owner != FT_ITERATION || s.tid != tid(server.redis))
			continue;
		iterations++;
		accepted += s.arg[1] >> 32 & 0xffff;
		sampled += s.flags & FT_SPAN_SAMPLED ? 1 : 0;
	}
	CHECK(iterations > 500);
	CHECK(accepted == 5);
	CHECK(sampled <= 2); // the first, which began before, and the last
}
