// SPDX-License-Identifier: MIT
// Timelines: one owner per instant, from nested spans and from tallies.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

TEST_CASE("the innermost span owns each instant")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.Frame(FT_FORK, 100, 900, 0, 500);
	b.Frame(FT_RECLAIM, 300, 600, 1, 250);
	b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 400, 450, 2);
	b.Tally(FT_OWN_CODE, 0, 1000, 200);
	b.Finish();
	Timeline t = b.Timeline();

	CHECK(Spent(t, Cause::ServerBusy, 0, 1000) == 200);
	CHECK(Spent(t, Cause::Fork, 0, 1000) == 500);
	CHECK(Spent(t, Cause::Reclaim, 0, 1000) == 250);
	CHECK(Spent(t, Cause::SoftirqNetRx, 0, 1000) == 50);
	CHECK(Spent(t, Cause::Reclaim, 420, 470) == 20);
	CHECK(Spent(t, Cause::SoftirqNetRx, 420, 470) == 30);
	REQUIRE(t.pieces.size() == 8);
	for (size_t i = 1; i < t.pieces.size(); i++)
		CHECK(t.pieces[i].start_ns > t.pieces[i - 1].start_ns);
}

TEST_CASE("an off-CPU span is blocked first, then on the run queue")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	SECTION("outside frames")
	{
		b.Off(FT_FILE_WRITE, 100, 400, 500);
		b.Tally(FT_OWN_CODE, 0, 1000, 600);
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::FileWrite, 0, 1000) == 300);
		CHECK(Spent(t, Cause::RunQueue, 0, 1000) == 100);
		CHECK(Spent(t, Cause::FileWrite, 100, 400) == 300);
		CHECK(Spent(t, Cause::RunQueue, 400, 500) == 100);
	}
	SECTION("idle, and then runnable without running")
	{
		b.Off(FT_IDLE, 100, 400, 500);
		b.Tally(FT_OWN_CODE, 0, 1000, 600);
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::Idle, 0, 1000) == 300);
		CHECK(Spent(t, Cause::RunQueue, 0, 1000) == 100);
		REQUIRE(t.idle_ns.size() == 1);
		CHECK(t.idle_ns[0] == kBase + 400);
	}
	SECTION("inside a frame, blocked is the frame's")
	{
		b.Frame(FT_FSYNC, 50, 800, 0, 350);
		b.Off(FT_FSYNC, 100, 400, 500, 1);
		b.Tally(FT_OWN_CODE, 0, 1000, 250);
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::Fsync, 0, 1000) == 650);
		CHECK(Spent(t, Cause::RunQueue, 0, 1000) == 100);
	}
	SECTION("a thread whose cgroup has used up its quota waits for the quota")
	{
		b.Off(FT_FILE_WRITE, 100, 400, 500).flags = FT_SPAN_THROTTLED;
		b.Off(FT_RUN_QUEUE, 500, 500, 550);
		b.Tally(FT_OWN_CODE, 0, 1000, 540);
		b.Tally(FT_CPU_QUOTA, 0, 1000, 10);
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::FileWrite, 100, 400) == 300);
		CHECK(Spent(t, Cause::CpuQuota, 400, 500) == 100);
		CHECK(Spent(t, Cause::CpuQuota, 0, 1000) == 110);
		CHECK(Spent(t, Cause::RunQueue, 0, 1000) == 50);
		Account a = AccountOf(b.run, b.ThreadIndex());
		CHECK(a.accounted_ns == a.wall_ns);
		CHECK(a.by_cause[Index(Cause::CpuQuota)] == 110);
	}
	SECTION("runnable from the start: preempted")
	{
		b.Off(FT_RUN_QUEUE, 100, 100, 500);
		b.Tally(FT_OWN_CODE, 0, 1000, 600);
		b.Finish();
		CHECK(Spent(b.Timeline(), Cause::RunQueue, 0, 1000) == 400);
	}
}

TEST_CASE("tallies divide the time between spans, window by window")
{
	RunBuilder b;
	b.Thread(kServer, 0, 4000 * us);
	b.Off(FT_IDLE, 500 * us, 700 * us, 700 * us);
	// First window: 800 us uncovered, a quarter of it page faults. Second: all own code. Third: unknown.
	b.Tally(FT_OWN_CODE, 0, 1000 * us, 600 * us);
	b.Tally(FT_COW_COPY, 0, 1000 * us, 200 * us, 40);
	b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
	b.Tally(FT_OWN_CODE, 3000 * us, 4000 * us, 1000 * us);
	b.Finish();
	Timeline t = b.Timeline();

	CHECK(Spent(t, Cause::CowCopy, 0, 1000 * us) == 200 * us);
	CHECK(Spent(t, Cause::ServerBusy, 0, 1000 * us) == 600 * us);
	CHECK(Spent(t, Cause::CowCopy, 0, 400 * us) == 100 * us);
	CHECK(Spent(t, Cause::CowCopy, 600 * us, 1000 * us) == 75 * us);
	CHECK(Spent(t, Cause::CowCopy, 1000 * us, 2000 * us) == 0);
	CHECK(Spent(t, Cause::Unknown, 2000 * us, 3000 * us) == 1000 * us);
	CHECK(Spent(t, Cause::Unknown, 0, 4000 * us) == 1000 * us);
}

TEST_CASE("tallied time inside a frame stays the frame's")
{
	// A softirq of 15 us inside the fork is in the tally and not a span. The window's uncovered time is
	// own code.
	RunBuilder b;
	b.Thread(kServer, 0, 1000 * us);
	b.Frame(FT_FORK, 100 * us, 900 * us, 0, 785 * us);
	b.Tally(FT_OWN_CODE, 0, 1000 * us, 200 * us);
	b.Tally(static_cast<ft_owner>(FT_SOFTIRQ + 1), 0, 1000 * us, 15 * us);
	b.Finish();
	Timeline t = b.Timeline();
	CHECK(Spent(t, Cause::Fork, 0, 1000 * us) == 800 * us);
	CHECK(Spent(t, Cause::ServerBusy, 0, 1000 * us) == 200 * us);
	Account a = AccountOf(b.run, b.ThreadIndex());
	CHECK(a.wall_ns == 1000 * us);
	CHECK(a.accounted_ns == 1000 * us);
	CHECK(a.by_cause[Index(Cause::SoftirqTimer)] == 15 * us);
	CHECK(a.by_cause[Index(Cause::Fork)] == 785 * us);
}

TEST_CASE("time without a tally is unknown, but a short interval across a window boundary is not")
{
	RunBuilder b;
	b.Thread(kServer, 0, 2000 * us);
	SECTION("within one short interval: divided among the known causes")
	{
		b.Tally(FT_OWN_CODE, 0, 1000 * us, 985 * us);
		b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
		b.Finish();
		CHECK(Spent(b.Timeline(), Cause::ServerBusy, 0, 2000 * us) == 2000 * us);
	}
	SECTION("more than that: unknown")
	{
		b.Tally(FT_OWN_CODE, 0, 1000 * us, 600 * us);
		b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::ServerBusy, 0, 1000 * us) == 600 * us);
		CHECK(Spent(t, Cause::Unknown, 0, 1000 * us) == 400 * us);
	}
	SECTION("more, where events were dropped: its place is unknown")
	{
		b.Tally(FT_OWN_CODE, 0, 1000 * us, 600 * us);
		b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
		b.run.drops.push_back({kBase + 500 * us, kBase + 600 * us, 3, FT_DROP_RING, FT_DROP_TALLY});
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::Unknown, 0, 1000 * us) == 1000 * us);
		CHECK(Spent(t, Cause::ServerBusy, 1000 * us, 2000 * us) == 1000 * us);
	}
	SECTION("lost samples lose no time")
	{
		b.Tally(FT_OWN_CODE, 0, 1000 * us, 600 * us);
		b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
		b.run.drops.push_back(
		    {kBase + 500 * us, kBase + 600 * us, 3, FT_DROP_RING, FT_DROP_CPU_SAMPLE});
		b.run.drops.push_back({kBase + 500 * us, kBase + 600 * us, 3, FT_DROP_UNWIND, 0});
		b.Finish();
		CHECK(Spent(b.Timeline(), Cause::ServerBusy, 0, 1000 * us) == 600 * us);
	}
	SECTION("blocks that the recorder could not write: of time records or of other records")
	{
		const uint32_t kind =
		    GENERATE(FT_BLOCK_SPAN, FT_BLOCK_TALLY, FT_BLOCK_THREAD, FT_BLOCK_CPU_SAMPLE,
			     FT_BLOCK_SAMPLE, FT_BLOCK_IO, FT_BLOCK_CPU_SLICE, FT_BLOCK_DETAIL);
		const bool of_time =
		    kind == FT_BLOCK_SPAN || kind == FT_BLOCK_TALLY || kind == FT_BLOCK_THREAD;
		b.Tally(FT_OWN_CODE, 0, 1000 * us, 600 * us);
		b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
		b.run.drops.push_back({kBase + 500 * us, kBase + 600 * us, 3, FT_DROP_DISK, kind});
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::Unknown, 0, 1000 * us) == (of_time ? 1000 * us : 400 * us));
		CHECK(Spent(t, Cause::ServerBusy, 1000 * us, 2000 * us) == 1000 * us);
	}
	SECTION("a drop that left the account complete changes nothing")
	{
		b.Tally(FT_OWN_CODE, 0, 1000 * us, 600 * us);
		b.Tally(FT_FORK, 0, 1000 * us, 400 * us);
		b.Tally(FT_OWN_CODE, 1000 * us, 2000 * us, 1000 * us);
		b.run.drops.push_back({kBase + 500 * us, kBase + 600 * us, 1, FT_DROP_RING, FT_FORK});
		b.Finish();
		Timeline t = b.Timeline();
		CHECK(Spent(t, Cause::Unknown, 0, 2000 * us) == 0);
		CHECK(Spent(t, Cause::Fork, 0, 1000 * us) == 400 * us);
	}
}

TEST_CASE("outside a thread's account all time is unknown")
{
	RunBuilder b;
	b.Thread(kServer, 1000, 2000);
	b.Tally(FT_OWN_CODE, 1000, 2000, 1000);
	b.Finish();
	Timeline t = b.Timeline();
	CHECK(Spent(t, Cause::Unknown, 0, 3000) == 2000);
	CHECK(Spent(t, Cause::ServerBusy, 0, 3000) == 1000);
	CHECK(Spent(t, Cause::Unknown, 0, 500) == 500);
	CHECK(Spent(t, Cause::Unknown, 2500, 2600) == 100);
	CHECK(Spent(Timeline(), Cause::Unknown, 0, 77) == 77);
}

TEST_CASE("overlapping spans of a damaged recording still give one owner per instant")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.Frame(FT_FORK, 100, 500);
	b.Frame(FT_RECLAIM, 400, 900, 1); // outlives the frame in which it began
	b.Frame(FT_COW_COPY, 950, 2000);  // outlives the thread
	b.Finish();
	Timeline t = b.Timeline();
	CHECK(Spent(t, Cause::Fork, 0, 1000) == 300);
	CHECK(Spent(t, Cause::Reclaim, 0, 1000) == 100);
	CHECK(Spent(t, Cause::CowCopy, 0, 1000) == 50);
	CHECK(t.end_ns() == kBase + 1000);
}

TEST_CASE("a fault that never ended belongs to its enclosing span, and so does everything in it")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.Frame(FT_OWN_CODE, 200, 800, 0, 500).flags = FT_SPAN_ABANDONED;
	b.Off(FT_FAULT_OTHER, 300, 380, 400, 1);
	b.CpuSample(100, 0, FT_FAULT_OTHER);
	b.CpuSample(500, 0, FT_FAULT_OTHER);
	b.CpuSample(600, 0, FT_HARDIRQ);
	b.CpuSample(900, 0, FT_FAULT_OTHER);
	b.Tally(FT_OWN_CODE, 0, 1000, 400);
	b.Finish();
	Timeline t = b.Timeline();
	CHECK(Spent(t, Cause::ServerBusy, 0, 1000) == 900);
	CHECK(Spent(t, Cause::ServerBusy, 200, 800) == 500); // it was there and nowhere else
	CHECK(Spent(t, Cause::Syscall, 0, 1000) == 80);
	CHECK(Spent(t, Cause::RunQueue, 0, 1000) == 20);
	CHECK(Spent(t, Cause::PageFault, 0, 1000) == 0);
	CHECK(AccountOf(b.run, 0).accounted_ns == 1000);
	CHECK(b.run.cpu_samples[0].owner == FT_FAULT_OTHER);
	CHECK(b.run.cpu_samples[1].owner == FT_OWN_CODE);
	CHECK(b.run.cpu_samples[2].owner == FT_HARDIRQ);
	CHECK(b.run.cpu_samples[3].owner == FT_FAULT_OTHER);
}

TEST_CASE("a span with neither end recorded does not identify the serving thread")
{
	RunBuilder b;
	std::string why;
	b.Thread(kServer, 0, 1000);
	b.Thread(101, 0, 1000, 0, "bio_lazy_free", kServer);
	b.Tally(FT_OWN_CODE, 0, 1000, 800);
	b.Tally(FT_OWN_CODE, 0, 1000, 1000, 1, 101);
	ft_span &iteration = b.Frame(FT_ITERATION, 0, 1000, 0, 1000, 101);
	iteration.flags = FT_SPAN_UNFINISHED;
	SECTION("a thread that was already working when recording began")
	{
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, -1, &why))].tid == kServer);
	}
	SECTION("a thread whose requests were recorded")
	{
		iteration.arg[0] = 3;
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, -1, &why))].tid == 101);
	}
}

TEST_CASE("iterations are overlays: not part of account or timeline")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.Frame(FT_ITERATION, 100, 900);
	b.Tally(FT_OWN_CODE, 0, 1000, 1000);
	b.Finish();
	CHECK(b.run.spans.empty());
	REQUIRE(b.run.iterations.size() == 1);
	CHECK(b.run.threads[0].iteration_count == 1);
	CHECK(AccountOf(b.run, 0).accounted_ns == 1000);
	CHECK(Spent(b.Timeline(), Cause::ServerBusy, 0, 1000) == 1000);
}

TEST_CASE("a thread's account sums own times, off-CPU parts and tallies")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	ft_span &fork = b.Frame(FT_FORK, 100, 500, 0, 250);
	fork.runnable_ns = 50; // preempted for less than a span's minimum: still the fork's
	b.Off(FT_FORK, 200, 250, 300, 1);
	b.Off(FT_IDLE, 600, 800, 850);
	b.Tally(FT_OWN_CODE, 0, 1000, 340);
	b.Tally(FT_RUN_QUEUE, 0, 1000, 10);
	b.Finish();
	Account a = AccountOf(b.run, 0);
	CHECK(a.by_cause[Index(Cause::Fork)] == 350);
	CHECK(a.by_cause[Index(Cause::RunQueue)] == 110);
	CHECK(a.by_cause[Index(Cause::Idle)] == 200);
	CHECK(a.by_cause[Index(Cause::ServerBusy)] == 340);
	CHECK(a.accounted_ns == a.wall_ns);
}

TEST_CASE("spans find their thread when a tid is reused, and unannounced threads are created")
{
	RunBuilder b;
	b.Thread(7, 0, 1000, FT_THREAD_MAIN | FT_THREAD_CHILD, "snapshot child");
	b.Thread(7, 5000, 6000, FT_THREAD_MAIN | FT_THREAD_CHILD, "AOF rewrite child");
	b.Frame(FT_FSYNC, 100, 200, 0, 100, 7);
	b.Frame(FT_FSYNC, 5100, 5200, 0, 100, 7);
	b.Frame(FT_FSYNC, 5300, 5400, 0, 100, 8);
	b.Finish();
	REQUIRE(b.run.threads.size() == 3);
	CHECK(b.run.threads[0].span_count == 1);
	CHECK(b.run.threads[1].role == "AOF rewrite child");
	CHECK(b.run.threads[1].span_count == 1);
	CHECK(b.run.threads[2].tid == 8);
	CHECK(b.run.threads[2].start_ns == kBase + 5300);
	CHECK(b.run.warnings.size() == 1);
}

TEST_CASE("a thread left open ends with its last known record")
{
	RunBuilder b;
	b.Thread(kServer, 0, 0).end_ns = 0;
	b.Frame(FT_FORK, 100, 500);
	b.Tally(FT_OWN_CODE, 0, 700, 300);
	b.Finish();
	CHECK(b.run.threads[0].end_ns == kBase + 700);
}

TEST_CASE("the serving thread is the main thread of the server's process")
{
	RunBuilder b;
	b.Thread(100, 0, 1000);
	b.Thread(101, 0, 1000, 0, "bio_aof_fsync", 100);
	b.Thread(150, 10, 500, FT_THREAD_MAIN | FT_THREAD_CHILD, "snapshot child");
	std::string why;
	SECTION("one process needs no name")
	{
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, -1, &why))].tid == 100);
	}
	b.Thread(200, 0, 1000);
	b.run.targets = {{100, "redis-server", "redis-server *:6379", {}},
			 {200, "redis-server", "redis-server *:63790", {}}};
	b.run.servers = {"127.0.0.1:6379", "localhost:63790", "127.0.0.1:7000", "unix:/tmp/a.sock"};
	SECTION("of several, chosen by the command line")
	{
		b.run.targets[1].cmdline += " unixsocket:/tmp/a.sock";
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 0, &why))].tid == 100);
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 1, &why))].tid == 200);
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 3, &why))].tid == 200);
		CHECK(ServingThread(b.run, 2, &why) == -1);
		CHECK(why.find("127.0.0.1:7000") != std::string::npos);
		CHECK(ServingThread(b.run, -1, &why) == -1);
	}
	SECTION("of several, chosen by the sockets they listened on, whatever the command line")
	{
		b.run.targets[0].listens = {"tcp:63790", "unix:/tmp/a.sock"};
		b.run.targets[1].listens = {"tcp:7000"};
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 1, &why))].tid == 100);
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 2, &why))].tid == 200);
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 3, &why))].tid == 100);
		CHECK(ServingThread(b.run, 0, &why) == -1);
	}
	SECTION("chosen by the process id that the server reported to the load generator, first of all")
	{
		b.run.server_pids = {200, 0, 100, 0};
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 0, &why))].tid == 200);
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, 2, &why))].tid == 100);
	}
	SECTION("none was recorded")
	{
		RunBuilder empty;
		empty.Finish();
		CHECK(ServingThread(empty.run, 0, &why) == -1);
		CHECK(!why.empty());
	}
}

TEST_CASE("of a process' threads with an event loop, the one that runs the code serves")
{
	RunBuilder b;
	b.Thread(100, 0, 1000, FT_THREAD_MAIN, "memcached");
	b.Thread(101, 0, 1000, 0, "mc-worker", 100);
	b.Thread(102, 0, 1000, 0, "mc-worker", 100);
	b.Thread(103, 0, 1000, 0, "mc-lrumaint", 100); // sleeps, but does not wait for requests
	std::string why;
	for (uint32_t tid : {100, 101, 102})
		b.Tally(FT_IDLE, 0, 1000, 100, 1, tid);
	b.Tally(FT_OWN_CODE, 0, 1000, 10, 0, 100);
	b.Tally(FT_OWN_CODE, 0, 1000, 600, 0, 101);
	b.Tally(FT_OWN_CODE, 0, 1000, 900, 0, 103);
	SECTION("the worker, not the listener")
	{
		b.Finish();
		CHECK(b.run.threads[static_cast<size_t>(ServingThread(b.run, -1, &why))].tid == 101);
	}
	SECTION("two workers: the thread of a connection is unknown")
	{
		b.Tally(FT_OWN_CODE, 0, 1000, 500, 0, 102);
		b.Finish();
		CHECK(ServingThread(b.run, -1, &why) == -1);
		CHECK(why.find("2 threads") != std::string::npos);
	}
}

TEST_CASE("an event-loop iteration begins when its thread is woken, recorded or not")
{
	RunBuilder b;
	b.Thread(kServer, 0, 10 * ms);
	b.Frame(FT_ITERATION, 100 * us, 300 * us).arg[0] = 7;
	b.Off(FT_IDLE, 1 * ms, 2 * ms, 5 * ms);				  // waited 3 ms for a CPU ...
	ft_span &iteration = b.Frame(FT_ITERATION, 5001 * us, 5100 * us); // ... for this iteration
	iteration.arg[0] = 9;
	iteration.arg[1] = 11;
	b.Off(FT_IDLE, 6 * ms, 7 * ms, 8 * ms);	      // and 1 ms for one that was too short
	b.Off(FT_IDLE, 9 * ms, 9500 * us, 9501 * us); // woken at once
	b.Finish();
	const Thread &t = b.run.threads[0];
	REQUIRE(t.iteration_count == 3);
	CHECK(b.run.iterations[0].start_ns == kBase + 100 * us);
	CHECK(b.run.iterations[1].start_ns == kBase + 2 * ms);
	CHECK(b.run.iterations[1].duration_ns == 3100 * us);
	CHECK(b.run.iterations[1].arg[0] == 9);
	CHECK(b.run.iterations[1].arg[1] == 11);
	CHECK(b.run.iterations[2].start_ns == kBase + 7 * ms);
	CHECK(b.run.iterations[2].duration_ns == 1 * ms);
}

TEST_CASE("requests to a thread stopped in its event loop's wait wait all that time")
{
	constexpr int16_t kEpollWait = 232, kFutex = 202;
	RunBuilder b;
	b.Thread(kServer, 0, 20 * ms);
	auto off = [&](ft_owner owner, int16_t call, uint64_t start, uint64_t woken, uint64_t end) {
		b.Off(owner, start, woken, end).syscall = call;
	};
	off(FT_IDLE, kEpollWait, 0, 1 * ms, 1 * ms);
	off(FT_STOPPED, kEpollWait, 1 * ms, 3 * ms, 3100 * us); // and no recorded iteration after it
	off(FT_IDLE, kEpollWait, 4 * ms, 5 * ms, 5 * ms);
	off(FT_FROZEN, kEpollWait, 5 * ms, 7 * ms, 7 * ms); // the iteration after it was
	b.Frame(FT_ITERATION, 7 * ms + 200, 7100 * us).arg[0] = 9;
	b.Frame(FT_ITERATION, 8 * ms, 12 * ms);
	size_t more = 0;
	SECTION("what comes after it may be many iterations, and shows nothing")
	{
		ft_span &many = b.Frame(FT_ITERATION, 3100 * us + 300, 3500 * us);
		many.flags = FT_SPAN_SAMPLED;
		many.arg[1] = 30;
		more = 1;
	}
	SECTION("within an iteration it is part of it")
	{
		off(FT_STOPPED, kEpollWait, 9 * ms, 11 * ms, 11 * ms);
	}
	SECTION("in another call the thread does not wait for events")
	{
		off(FT_PTRACED, kFutex, 13 * ms, 15 * ms, 15 * ms);
	}
	b.Finish();
	REQUIRE(b.run.threads[0].iteration_count == 3 + more);
	CHECK(b.run.iterations[0].start_ns == kBase + 1 * ms);
	CHECK(b.run.iterations[0].duration_ns == 2100 * us);
	CHECK_FALSE(MayBeMany(b.run.iterations[0]));
	CHECK(b.run.iterations[1 + more].start_ns == kBase + 5 * ms);
	CHECK(b.run.iterations[1 + more].duration_ns == 2100 * us);
	CHECK(b.run.iterations[1 + more].arg[0] == 9);
	CHECK(b.run.iterations[2 + more].duration_ns == 4 * ms);
}

TEST_CASE("the CPU holder of a runnable thread decides the cause")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.Off(FT_IDLE, 100, 150, 200).flags = FT_SPAN_KSOFTIRQD;
	b.Off(FT_RUN_QUEUE, 300, 300, 400);
	b.Off(FT_RUN_QUEUE, 500, 500, 700).flags = FT_SPAN_THROTTLED | FT_SPAN_KSOFTIRQD;
	b.Finish();
	Account a = AccountOf(b.run, 0);
	CHECK(a.by_cause[Index(Cause::SoftirqDeferred)] == 50);
	CHECK(a.by_cause[Index(Cause::RunQueue)] == 100);
	CHECK(a.by_cause[Index(Cause::CpuQuota)] == 200);
	Timeline t = b.Timeline();
	CHECK(t.pieces[PieceAt(t, kBase + 120)].cause == Cause::Idle);
	CHECK(t.pieces[PieceAt(t, kBase + 180)].cause == Cause::SoftirqDeferred);
	CHECK(t.pieces[PieceAt(t, kBase + 600)].cause == Cause::CpuQuota);
}

TEST_CASE("a wait inside a fault gets the fault's kind, once that is known")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.Frame(FT_PAGE_IN, 100, 500, 0, 100);
	b.Off(FT_FAULT_OTHER, 150, 450, 450, 1);
	b.Off(FT_FAULT_OTHER, 600, 700, 700, 1); // its fault was lost
	b.Finish();
	CHECK(b.run.spans[1].owner == FT_PAGE_IN);
	CHECK(b.run.spans[2].owner == FT_FAULT_OTHER);
	Account a = AccountOf(b.run, 0);
	CHECK(a.by_cause[Index(Cause::PageIn)] == 400);
}

TEST_CASE("apportioning neither loses nor adds time")
{
	uint64_t share[3];
	const uint64_t thirds[] = {1, 1, 1};
	Apportion(10, thirds, 3, share);
	CHECK(share[0] + share[1] + share[2] == 10);
	CHECK(share[0] == 4);
	const uint64_t zero[] = {0, 0, 0};
	Apportion(10, zero, 3, share);
	CHECK(share[0] == 10);
	const uint64_t huge[] = {UINT64_MAX, UINT64_MAX, 1};
	Apportion(1'000'000'007, huge, 3, share);
	CHECK(share[0] + share[1] + share[2] == 1'000'000'007);
	CHECK(share[2] == 0);
}

TEST_CASE("a frame that an interrupt made a little too long is kept, one with impossible times is dropped")
{
	Run run;
	ft_span fork = {};
	fork.start_ns = 1'000'000'000;
	fork.duration_ns = 2'932'159;
	fork.on_cpu_ns = 2'941'073;
	fork.owner = FT_FORK;
	run.spans.push_back(fork);
	fork.on_cpu_ns = 3 * fork.duration_ns;
	run.spans.push_back(fork);
	CHECK(DropNonsense(&run) == 1);
	REQUIRE(run.spans.size() == 1);
	CHECK(run.spans[0].on_cpu_ns == 2'932'159);
}
