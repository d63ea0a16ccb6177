// SPDX-License-Identifier: MIT
// The holder responsible for a lock wait: one holder, a chain of holders, conditions, and unknown holders.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint64_t kLock = 0x7f0000001000, kOtherLock = 0x7f0000002000;

struct Locks : RunBuilder {
	// The server's threads, all present for 100 ms and running their own code except for what a test
	// adds.
	Locks()
	{
		Thread(kServer, 0, 100 * ms);
		for (uint32_t tid = kServer + 1; tid <= kServer + 8; tid++)
			Thread(tid, 0, 100 * ms, 0, "worker", kServer);
		Thread(300, 0, 100 * ms, FT_THREAD_MAIN, "another");
	}
	// A futex wait from start to end, running right after it. 0: the lock word has no owner, or the waker
	// is unknown.
	ft_span &Wait(uint32_t tid, uint64_t start, uint64_t end, uint32_t owner, uint32_t waker,
		      uint64_t address = kLock)
	{
		ft_span &s = Off(FT_LOCK_WAIT, start, end, end, 0, tid);
		s.arg[0] = address;
		s.arg[1] = owner | uint64_t{waker} << 32;
		s.syscall = 202;
		return s;
	}
	// "100-115 101 lock-wait, ...": the holders that the server's main thread waited for, in ms.
	std::string Found()
	{
		for (uint32_t tid = kServer; tid <= kServer + 8; tid++)
			Tally(FT_OWN_CODE, 0, 100 * ms, 1 * ms, 1, tid);
		Finish();
		ThreadTimelines threads(run);
		std::string text;
		for (const Foreign &f : LockForeign(&threads, threads.Of(ThreadIndex())))
			text += (text.empty() ? "" : ", ") + std::to_string((f.start_ns - kBase) / ms) + "-" +
				std::to_string((f.end_ns - kBase) / ms) + " " +
				std::to_string(run.threads[f.thread].tid) + " " + CauseName(f.cause);
		return text;
	}
};

} // namespace

TEST_CASE("a wait belongs entirely to the holder that ended it")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 25 * ms, 101, 101);
	CHECK(b.Found() == "10-25 101 lock-wait");
}

TEST_CASE("what stopped the holder is the wait's cause")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 70 * ms, 101, 101);
	b.Off(FT_STOPPED, 5 * ms, 20 * ms, 20 * ms, 0, 101);
	b.Off(FT_FSYNC, 30 * ms, 36 * ms, 40 * ms, 0, 101); // then it has to wait for a CPU
	b.Off(FT_IDLE, 50 * ms, 55 * ms, 55 * ms, 0, 101);  // poll
	b.Off(FT_NETWORK, 60 * ms, 65 * ms, 65 * ms, 0, 101);
	b.Off(FT_SLEEP, 66 * ms, 67 * ms, 67 * ms, 0, 101); // voluntarily
	CHECK(b.Found() == "10-20 101 stopped, 20-30 101 lock-wait, 30-36 101 fsync, 36-40 101 run-queue, "
			   "40-70 101 lock-wait");
}

TEST_CASE("the thread that ended a wait has held the lock since its own wait for it")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 40 * ms, 101, 102);
	SECTION("before that, the thread that ended that wait held it")
	{
		b.Wait(102, 5 * ms, 20 * ms, 101, 101);
		CHECK(b.Found() == "10-20 101 lock-wait, 20-40 102 lock-wait");
	}
	SECTION("the holder before that may be unknown")
	{
		b.Wait(102, 5 * ms, 20 * ms, 0, 0);
		CHECK(b.Found() == "20-40 102 lock-wait");
	}
	SECTION("a wait for another lock does not count")
	{
		b.Wait(102, 5 * ms, 20 * ms, 0, 0, kOtherLock);
		CHECK(b.Found() == "10-40 102 lock-wait");
	}
	SECTION("nor does a wait that ended before")
	{
		b.Wait(102, 5 * ms, 9 * ms, 103, 103);
		CHECK(b.Found() == "10-40 102 lock-wait");
	}
	SECTION("without a wait of span length it held the lock all the time")
	{
		CHECK(b.Found() == "10-40 102 lock-wait");
	}
}

TEST_CASE("a chain of holders is followed for four steps")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 70 * ms, 106, 101);
	for (uint32_t i = 1; i <= 5; i++) // 105 held it first, 101 last
		b.Wait(100 + i, 5 * ms, (70 - 10 * i) * ms, 106, 101 + i);
	CHECK(b.Found() ==
	      "30-40 104 lock-wait, 40-50 103 lock-wait, 50-60 102 lock-wait, 60-70 101 lock-wait");
}

TEST_CASE("a holder that waits for another lock waits for that lock's holder")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 40 * ms, 101, 101);
	SECTION("and the wait belongs to the latter")
	{
		b.Wait(101, 15 * ms, 30 * ms, 102, 102, kOtherLock);
		b.Off(FT_STOPPED, 20 * ms, 25 * ms, 25 * ms, 0, 102);
		CHECK(b.Found() == "10-15 101 lock-wait, 15-20 102 lock-wait, 20-25 102 stopped, 25-30 102 "
				   "lock-wait, 30-40 101 lock-wait");
	}
	SECTION("if the latter is unknown, the wait belongs to the holder")
	{
		b.Wait(101, 15 * ms, 30 * ms, 0, 0, kOtherLock);
		CHECK(b.Found() == "10-40 101 lock-wait");
	}
	SECTION("it never belongs to the waiting thread itself")
	{
		b.Wait(101, 15 * ms, 30 * ms, kServer, kServer, kOtherLock);
		CHECK(b.Found() == "10-40 101 lock-wait");
	}
}

TEST_CASE("for a condition, only the waker's activity counts")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 40 * ms, 0, 101);
	SECTION("it ran and was delayed")
	{
		b.Off(FT_FILE_WRITE, 20 * ms, 25 * ms, 25 * ms, 0, 101);
		CHECK(b.Found() == "10-20 101 lock-wait, 20-25 101 file-write, 25-40 101 lock-wait");
	}
	SECTION("while it waited for events itself, no thread is responsible")
	{
		b.Off(FT_IDLE, 5 * ms, 30 * ms, 30 * ms, 0, 101);
		CHECK(b.Found() == "30-40 101 lock-wait");
	}
	SECTION("nor while it waited for a job from the waiting thread")
	{
		b.Wait(101, 5 * ms, 12 * ms, 0, kServer, kOtherLock);
		CHECK(b.Found() == "12-40 101 lock-wait");
	}
}

TEST_CASE("a wait that a timer ended belongs to the holder, if there was one")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 20 * ms, 101, 0);
	b.Wait(kServer, 30 * ms, 40 * ms, 0, 0);
	CHECK(b.Found() == "10-20 101 lock-wait");
}

TEST_CASE("only a thread of the same process can be responsible")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 20 * ms, 300, 300); // another process
	b.Wait(kServer, 30 * ms, 40 * ms, 77, 77);   // unknown
	b.Wait(kServer, 50 * ms, 60 * ms, kServer, kServer);
	b.Thread(150, 70 * ms, 80 * ms, 0, "gone", kServer);
	b.Wait(kServer, 85 * ms, 95 * ms, 150, 150); // it ended before
	CHECK(b.Found().empty());
}

TEST_CASE("waits of an old recording have no lock holder, and keep their CPU holder")
{
	Locks b;
	ft_span &s = b.Off(FT_LOCK_WAIT, 10 * ms, 20 * ms, 25 * ms);
	s.arg[1] = 101 | (5 * ms) << 32;
	CHECK(b.Found().empty());
	CHECK(HolderOf(b.run, b.run.spans[0]).tid == 101);
	CHECK(HolderOf(b.run, b.run.spans[0]).ns == 5 * ms);
}

TEST_CASE("a lock wait becomes its holder's activity on the timeline, and its sum stays")
{
	Locks b;
	b.Wait(kServer, 10 * ms, 40 * ms, 101, 101);
	b.Off(FT_STOPPED, 15 * ms, 35 * ms, 35 * ms, 0, 101);
	b.Finish();
	ThreadTimelines threads(b.run);
	Timeline t = b.Timeline();
	ResolveOthers(&threads, &t);
	REQUIRE(t.foreign.size() == 3);
	CHECK(Spent(t, Cause::Stopped, 0, 100 * ms) == 20 * ms);
	CHECK(Spent(t, Cause::LockWait, 0, 100 * ms) == 10 * ms);
	CHECK(Spent(t, Cause::Stopped, 20 * ms, 21 * ms) == 1 * ms);
	// The timeline of a thread that waited for no lock is unchanged.
	Timeline other = b.Timeline(102);
	ResolveOthers(&threads, &other);
	CHECK(other.foreign.empty());
}
