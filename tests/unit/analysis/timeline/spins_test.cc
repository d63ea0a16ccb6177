// SPDX-License-Identifier: MIT
// A main thread that spins while it waits for its helper threads, on runs built by hand: which thread the
// time belongs to.
#include "analysis/timeline.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint32_t kHelper = 101, kOther = 102;

// Redis' main thread in one iteration in [10, 40) ms, and two idle helpers.
struct Threads : RunBuilder {
	uint32_t circles, work, helper_loop;

	Threads()
	{
		Thread(kServer, 0, 100 * ms);
		Thread(kHelper, 0, 100 * ms, 0, "io_thd_1", kServer);
		Thread(kOther, 0, 100 * ms, 0, "io_thd_2", kServer);
		circles = Stack({"redis-server",
				 {{"clock_gettime", "libc.so.6"},
				  {"", "redis-server"},
				  {"handleClientsWithPendingWritesUsingThreads", "redis-server"}},
				 {}});
		work = Stack({"redis-server", {{"lookupKey", "redis-server"}}, {}});
		helper_loop = Stack({"redis-server", {{"IOThreadMain", "redis-server"}}, {}});
		Iteration(10 * ms, 40 * ms);
		Off(FT_IDLE, 0, 10 * ms, 10 * ms);
		Tally(FT_OWN_CODE, 10 * ms, 40 * ms, 30 * ms);
		Off(FT_IDLE, 40 * ms, 100 * ms, 100 * ms);
	}
	void Iteration(uint64_t from, uint64_t to)
	{
		ft_span iteration = {};
		iteration.start_ns = kBase + from;
		iteration.duration_ns = to - from;
		iteration.tid = kServer;
		iteration.owner = FT_ITERATION;
		run.iterations.push_back(iteration);
	}
	// The main thread's samples, one per millisecond in [from, to) ms.
	void Sampled(uint32_t stack, uint64_t from, uint64_t to, uint32_t tid = kServer)
	{
		for (uint64_t t = from; t < to; t++)
			CpuSample(t * ms + ms / 2, stack, FT_OWN_CODE, tid);
	}
	void Stopped(uint32_t tid, uint64_t from, uint64_t to) { Off(FT_STOPPED, from, to, to, 0, tid); }
	forktail::analysis::Timeline Resolved()
	{
		Finish();
		Accounts accounts;
		accounts.Add(run, 0, UINT64_MAX);
		for (size_t i = 0; i < run.threads.size(); i++)
			run.threads[i].usual_turn_ns = accounts.UsualTurnNs(i);
		forktail::analysis::Timeline t = Timeline(kServer);
		ThreadTimelines threads(run);
		ResolveOthers(&threads, &t);
		return t;
	}
	uint64_t At(const forktail::analysis::Timeline &t, uint32_t tid, Cause cause)
	{
		uint64_t ns = 0;
		for (const Foreign &f : t.foreign)
			if (run.threads[f.thread].tid == tid && f.cause == cause)
				ns += f.end_ns - f.start_ns;
		return ns;
	}
};

} // namespace

TEST_CASE("Spinning of the main thread is blamed on what stops the helper")
{
	Threads b;
	b.Stopped(kHelper, 12 * ms, 32 * ms);
	b.Sampled(b.work, 10, 12);
	b.Sampled(b.circles, 12, 32);
	forktail::analysis::Timeline t = b.Resolved();
	CHECK(b.At(t, kHelper, Cause::Stopped) == 20 * ms);
	CHECK(Spent(t, Cause::Stopped, 0, 100 * ms) == 20 * ms);
	CHECK(Spent(t, Cause::ServerBusy, 0, 100 * ms) == 10 * ms);
	CHECK(t.foreign.size() == 1);
}

TEST_CASE("It waits once its own part is done: the rest of the time is its own")
{
	Threads b;
	b.Stopped(kHelper, 12 * ms, 32 * ms);
	b.Sampled(b.work, 12, 22);
	b.Sampled(b.circles, 22, 32);
	forktail::analysis::Timeline t = b.Resolved();
	CHECK(b.At(t, kHelper, Cause::Stopped) == 10 * ms);
	CHECK(Spent(t, Cause::Stopped, 22 * ms, 32 * ms) == 10 * ms);
}

TEST_CASE("Of several helpers it waits for the one that finishes last")
{
	Threads b;
	b.Stopped(kHelper, 12 * ms, 20 * ms);
	b.Stopped(kOther, 12 * ms, 36 * ms);
	b.Sampled(b.circles, 12, 36);
	forktail::analysis::Timeline t = b.Resolved();
	CHECK(b.At(t, kHelper, Cause::Stopped) == 0);
	CHECK(b.At(t, kOther, Cause::Stopped) == 24 * ms);
}

TEST_CASE("A helper that cannot run while the main thread works causes nothing")
{
	Threads b;
	b.Stopped(kHelper, 12 * ms, 32 * ms);
	b.Sampled(b.work, 10, 40);
	CHECK(b.Resolved().foreign.empty());
}

TEST_CASE("The main thread does not wait for a parked helper")
{
	Threads b;
	b.Off(FT_LOCK_WAIT, 12 * ms, 32 * ms, 32 * ms, 0, kHelper);
	b.Sampled(b.circles, 12, 32);
	CHECK(b.Resolved().foreign.empty());
}

TEST_CASE("The main thread waits for a helper that is working")
{
	Threads b;
	b.Tally(FT_OWN_CODE, 12 * ms, 32 * ms, 20 * ms, 1, kHelper);
	b.Tally(FT_OWN_CODE, 12 * ms, 32 * ms, 20 * ms, 1, kOther);
	b.Sampled(b.work, 10, 12);
	b.Sampled(b.circles, 12, 32);
	b.Sampled(b.work, 12, 32, kHelper);
	b.Sampled(b.helper_loop, 12, 32, kOther);
	forktail::analysis::Timeline t = b.Resolved();
	CHECK(b.At(t, kHelper, Cause::IoThread) == 20 * ms);
	CHECK(b.At(t, kOther, Cause::IoThread) == 0);
}

TEST_CASE("A wait that samples cut into two iterations is one, up to the sample that ends the last")
{
	Threads b;
	b.run.iterations = {};
	b.Iteration(10 * ms, 14 * ms);
	b.Iteration(14 * ms, 30 * ms);
	b.Sampled(b.work, 10, 11);
	b.CpuSample(14 * ms, 0, FT_SOFTIRQ, kServer);
	b.CpuSample(15 * ms, b.circles, FT_OWN_CODE, kServer);
	b.Sampled(b.circles, 18, 30);
	b.CpuSample(30 * ms, b.circles, FT_OWN_CODE, kServer);
	b.Sampled(b.work, 10, 30, kHelper);
	forktail::analysis::Timeline t = b.Resolved();
	// From the last sample of work, at 10.5 ms.
	CHECK(b.At(t, kHelper, Cause::IoThread) == 19'500'000);
}

TEST_CASE("Without a working helper, spinning is the main thread's own code")
{
	Threads b;
	b.Sampled(b.circles, 12, 32);
	b.Sampled(b.helper_loop, 12, 32, kHelper);
	CHECK(b.Resolved().foreign.empty());
}

TEST_CASE("Without samples only an iteration that ends with the helper's stall is a wait")
{
	Threads b;
	for (uint64_t at = 50; at < 90; at += 10)
		b.Iteration(at * ms, at * ms + 2 * ms); // the usual case
	SECTION("it ends soon after")
	{
		b.Stopped(kHelper, 12 * ms, 40 * ms - 100 * us);
		forktail::analysis::Timeline t = b.Resolved();
		CHECK(b.At(t, kHelper, Cause::Stopped) == 28 * ms - 100 * us - 2 * ms);
	}
	SECTION("it continues")
	{
		b.Stopped(kHelper, 12 * ms, 32 * ms);
		CHECK(b.Resolved().foreign.empty());
	}
}
