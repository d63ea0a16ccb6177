// SPDX-License-Identifier: MIT
// A server that is busy for the whole recording, or at its end, alone on its CPU without any context switch:
// it is recorded from the first instant, and so is the event-loop iteration that never ended.
#include <csignal>
#include <sched.h>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t ms = 1'000'000;

// A Redis on CPU 1, where no other task takes the CPU. This test and its recorders are on CPU 0.
class Alone
{
public:
	Alone()
	{
		cpu_set_t first;
		CPU_ZERO(&first);
		CPU_SET(0, &first);
		sched_getaffinity(0, sizeof before_, &before_);
		sched_setaffinity(0, sizeof first, &first);
		const std::string pid = std::to_string(redis.pid());
		REQUIRE(run({"taskset", "-a", "-cp", "1", pid}).status == 0);
		REQUIRE(run({"chrt", "-f", "-p", "10", pid}).status == 0);
	}
	~Alone()
	{
		redis.process().signal(SIGKILL); // whatever it still has to do
		if (busy_.joinable())
			busy_.join();
		sched_setaffinity(0, sizeof before_, &before_);
	}
	uint32_t tid() { return static_cast<uint32_t>(redis.pid()); }
	// Makes it run a script for this long, from about now on. It touches new memory all the time.
	void be_busy(int for_ms)
	{
		const std::string script =
		    "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end "
		    "local till, n = now() + " +
		    std::to_string(for_ms) +
		    ", 0 local c = 0 while now() < till do for i = 1, 1000 do n = n + i end "
		    // A string has 512 MB at most. Little new memory, because a virtual machine's host may
		    // take far longer than the kernel to provide it.
		    "c = c + 1 if c % 500000 == 0 then redis.call('DEL', 'k') end "
		    "redis.call('APPEND', 'k', string.rep('x', 200)) end return n";
		busy_ = std::thread([this, script] {
			run({"redis-cli", "-s", redis.socket(), "EVAL", script, "0"}, Seconds(60));
		});
		const uint64_t before_ns = ran_ns();
		REQUIRE(eventually([&] { return ran_ns() > before_ns + 100 * ms; }, Seconds(30)));
	}
	void wait() { busy_.join(); }

	Redis redis;

private:
	// CPU time of the server's main thread.
	uint64_t ran_ns() const
	{
		return std::stoull(read_file("/proc/" + std::to_string(redis.pid()) + "/schedstat"));
	}

	cpu_set_t before_ = {};
	std::thread busy_;
};

const ft_thread &main_of(const Recorded &r, uint32_t tid)
{
	for (const auto &[key, t] : r.threads)
		if (t.tid == tid)
			return t;
	throw std::runtime_error("the server's thread is not in the recording");
}

void check_busy(const Recorded &r, uint32_t tid, uint64_t at_least_ns)
{
	const ft_thread &t = main_of(r, tid);
	const uint64_t wall_ns = t.end_ns - t.start_ns;
	INFO("wall " << wall_ns << ", own code " << r.owned_ns(tid, FT_OWN_CODE) << ", waited for the CPU "
		     << r.owned_ns(tid, FT_RUN_QUEUE) << ", new memory " << r.owned_ns(tid, FT_PAGE_ZERO)
		     << ", switches not reported " << r.unseen_switches());
	CHECK(r.accounted_ns(tid) == wall_ns);
	// Not all of it: when a SCHED_FIFO thread takes a CPU for long, the kernel gives other threads a
	// part.
	CHECK(r.owned_ns(tid, FT_OWN_CODE) > at_least_ns / 2);
	// Events during it are recorded: the timer, new memory.
	CHECK(r.count(tid, FT_HARDIRQ) > 0);
	CHECK(r.count(tid, FT_PAGE_ZERO) > 0);
}

// The event-loop iterations that were open when its account closed.
std::vector<ft_span> unfinished(const Recorded &r, uint32_t tid)
{
	std::vector<ft_span> iterations;
	for (const ft_span &s : r.spans)
		if (s.tid == tid && s.owner == FT_ITERATION && (s.flags & FT_SPAN_UNFINISHED))
			iterations.push_back(s);
	return iterations;
}

void check_explained(const std::string &path)
{
	const Result r = run({program("forktail"), "explain", path});
	INFO(r.out << r.err);
	CHECK(r.status == 0);
	CHECK(r.out.find("server-busy") != std::string::npos);
	CHECK(r.err.find("nothing to explain") == std::string::npos);
}

} // namespace

TEST_CASE("a server busy from before the recording until after it has one iteration of own code")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	Alone alone;
	alone.be_busy(60'000);
	Recorder recorder(alone.redis.pid(), {"--duration", "700ms"});
	const Recorded r = recorder.finished();
	check_busy(r, alone.tid(), 600 * ms);
	const ft_thread &t = main_of(r, alone.tid());
	const auto iterations = unfinished(r, alone.tid());
	REQUIRE(iterations.size() == 1);
	CHECK(iterations[0].start_ns >= t.start_ns);
	CHECK(iterations[0].start_ns < t.start_ns + 100 * ms);
	CHECK(iterations[0].start_ns + iterations[0].duration_ns == t.end_ns);
	check_explained(recorder.path());
}

TEST_CASE("an iteration cut by the recording's end is recorded up to there")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	// If the server was held up, it reads the end of the PING's connection and the script without a wait
	// between them. The script's iteration is then known only from a CPU sample on, without its read. So
	// it has three tries.
	for (int tries = 3; tries > 0; tries--) {
		Alone alone;
		Recorder recorder(alone.redis.pid());
		alone.redis.command({"PING"});
		const uint64_t from_ns = ft_now_ns();
		alone.be_busy(60'000);
		sleep_for(Seconds(0.5));
		const Recorded r = recorder.stop();
		check_busy(r, alone.tid(), 500 * ms);
		const auto iterations = unfinished(r, alone.tid());
		REQUIRE(iterations.size() == 1);
		CHECK(iterations[0].start_ns >= from_ns);
		CHECK(iterations[0].duration_ns > 500 * ms);
		check_explained(recorder.path());
		if (tries > 1 && iterations[0].flags & FT_SPAN_SAMPLED)
			continue;
		CHECK((iterations[0].arg[1] & 0xffff) >= 1); // it read its request
		return;
	}
}

TEST_CASE("a recording that begins in the middle of an iteration has the rest of it")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	Alone alone;
	alone.be_busy(8000);
	Recorder recorder(alone.redis.pid());
	alone.wait();
	alone.redis.command({"PING"});
	const Recorded r = recorder.stop();
	const ft_span *iteration =
	    r.longest([&](const ft_span &s) { return s.tid == alone.tid() && s.owner == FT_ITERATION; });
	REQUIRE(iteration);
	const ft_thread &t = main_of(r, alone.tid());
	// Its begin was not recorded. If the next request was read before the loop waited, the loop itself is
	// unknown, too.
	CHECK((iteration->flags & ~FT_SPAN_UNFINISHED) == FT_SPAN_SAMPLED);
	CHECK(iteration->start_ns < t.start_ns + 100 * ms);
	CHECK(iteration->duration_ns > 300 * ms);
	check_busy(r, alone.tid(), iteration->duration_ns);
}

TEST_CASE("a server that is killed in the middle of an iteration leaves the iteration")
{
	REQUIRE(root());
	if (!two_cpus())
		return;
	Alone alone;
	Recorder recorder(alone.redis.pid());
	alone.redis.command({"PING"});
	alone.be_busy(60'000);
	sleep_for(Seconds(0.3));
	alone.redis.process().signal(SIGKILL);
	const Recorded r = recorder.finished();
	const auto iterations = unfinished(r, alone.tid());
	REQUIRE(iterations.size() == 1);
	CHECK(iterations[0].duration_ns > 300 * ms);
}
