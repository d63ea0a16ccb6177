// SPDX-License-Identifier: MIT
// What INFO has of a server's threads, in the time in which they were recorded, and their CPU time in it.
#include "analysis/explain.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::test;
using namespace forktail::analysis;

namespace
{

void Info(RunBuilder *b, const char *name, std::vector<Sample> samples)
{
	for (Sample &s : samples)
		s.t_ns += kBase;
	b->run.series.push_back({std::string("redis.") + name, "", {}, std::move(samples)});
}

} // namespace

TEST_CASE("threads have what INFO reports of them while they were recorded")
{
	RunBuilder b;
	b.Thread(kServer, 500 * ms, 4500 * ms);
	b.Thread(kServer + 1, 500 * ms, 4500 * ms, 0, "io_thd_1", kServer);
	b.run.threads.back().comm = "io_thd_1";
	Info(&b, "used_cpu_sys_main_thread", {{0, 1}, {1000 * ms, 1.5}, {3000 * ms, 1.75}, {5000 * ms, 9}});
	Info(&b, "used_cpu_user_main_thread", {{0, 2}, {1000 * ms, 2.25}, {4000 * ms, 2.5}, {5000 * ms, 9}});
	Info(&b, "used_active_time_main_thread",
	     {{0, 0}, {1000 * ms, 0.5}, {2000 * ms, 0.6}, {5000 * ms, 7}});
	Info(&b, "used_active_time_io_thread_1", {{0, 0.25}, {4000 * ms, 1.25}});
	Info(&b, "io_thread_1.clients", {{0, 0}, {1000 * ms, 9}, {2000 * ms, 4}});
	Info(&b, "io_thread_1.reads", {{0, 100}, {2000 * ms, 700}});
	Info(&b, "io_thread_1.writes", {{0, 90}, {2000 * ms, 650}});
	SECTION("recorded")
	{
		b.Finish();
		const ServerThreads all = ServerThreadsOf(b.run, kServer);
		CHECK(all.period.since_ns == kBase + 1000 * ms);
		CHECK(all.period.until_ns == kBase + 4000 * ms);
		REQUIRE(all.threads.size() == 2);
		const ServerThread &main = all.threads[0], &io = all.threads[1];
		CHECK(main.name == "main");
		CHECK(main.thread == static_cast<int>(b.ThreadIndex()));
		CHECK(main.cpu_ns == 500 * ms);
		CHECK(main.active_ns == 100 * ms);
		CHECK(!main.connections);
		CHECK(io.name == "io_thd_1");
		CHECK(io.thread == static_cast<int>(b.ThreadIndex(kServer + 1)));
		CHECK(!io.cpu_ns);
		CHECK(io.active_ns == 1000 * ms);
		CHECK(io.connections == 9);
		CHECK(io.reads == 600);
		CHECK(io.writes == 560);
	}
	SECTION("not recorded: all of the time")
	{
		b.Finish();
		const ServerThreads all = ServerThreadsOf(b.run, 0);
		REQUIRE(all.threads.size() == 2);
		CHECK(all.threads[0].thread == -1);
		CHECK(all.threads[0].cpu_ns == 15'000 * ms);
		CHECK(all.threads[1].thread == -1);
	}
	SECTION("the server was restarted")
	{
		b.run.series[0].samples.back().value = 0.1;
		b.Finish();
		CHECK(ServerThreadsOf(b.run, kServer).threads.empty());
	}
	SECTION("one answer")
	{
		for (Series &s : b.run.series)
			s.samples.resize(1);
		b.Finish();
		CHECK(ServerThreadsOf(b.run, 0).threads.empty());
	}
}

TEST_CASE("the CPU time of a thread in a period is of what it did on the CPU")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000 * ms);
	b.Frame(FT_FORK, 100 * ms, 140 * ms, 0, 30 * ms);
	b.Frame(FT_FORK, 560 * ms, 640 * ms, 0, 40 * ms); // half of it is after the period
	b.Off(FT_IDLE, 200 * ms, 300 * ms, 310 * ms);
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 20 * ms); // before the period
	b.Tally(FT_OWN_CODE, 50 * ms, 150 * ms, 20 * ms);
	b.Tally(FT_SOFTIRQ, 200 * ms, 300 * ms, 3 * ms);
	for (const ft_owner owner : {FT_RUN_QUEUE, FT_IDLE, FT_FSYNC, FT_SYSCALL, FT_CPU_QUOTA})
		b.Tally(owner, 200 * ms, 300 * ms, 50 * ms);
	b.Finish();
	CpuTimes cpu({kBase + 100 * ms, kBase + 600 * ms});
	SECTION("at once")
	{
		cpu.Add(b.run, 0, UINT64_MAX);
	}
	SECTION("in stretches")
	{
		cpu.Add(b.run, 0, kBase + 120 * ms);
		cpu.Add(b.run, kBase + 120 * ms, UINT64_MAX);
	}
	CHECK(cpu.Of(b.ThreadIndex()) == (30 + 20 + 10 + 3) * ms);
	CHECK(cpu.Of(7) == 0);
	ServerThreads all;
	all.threads.resize(2);
	all.threads[0].thread = static_cast<int>(b.ThreadIndex());
	AddCpuTimes(cpu, &all);
	CHECK(all.threads[0].kernel_cpu_ns == 63 * ms);
	CHECK(all.threads[1].kernel_cpu_ns == 0);
}
