// SPDX-License-Identifier: MIT
// Episodes and their evidence: which requests form one episode, and what is reported about it.
#include "tests/support/catch.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/evidence/evidence_of.h"

#include "analysis/timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

TEST_CASE("slow requests that overlap, or nearly, are one episode")
{
	RunBuilder b;
	b.Request(0, 0, 10 * ms);
	b.Request(5 * ms, 5 * ms, 7 * ms);
	b.Request(11 * ms, 11 * ms, 12 * ms);	      // 1 ms after the first ended: still the same episode
	b.Request(13 * ms + 1, 13 * ms + 1, 15 * ms); // more than 1 ms later: another episode
	b.Request(14 * ms, 14 * ms, 30 * ms);
	b.Request(29 * ms, 29 * ms, 29 * ms + 500 * us);
	b.Finish();
	Blame blame = b.Blame({600 * us, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);

	REQUIRE(episodes.size() == 2);
	CHECK(episodes[0].start_ns == kBase);
	CHECK(episodes[0].end_ns == kBase + 12 * ms);
	CHECK(episodes[0].requests == 3);
	CHECK(episodes[0].worst_ns == 10 * ms);
	CHECK(episodes[0].time_ns == 13 * ms);
	CHECK(episodes[1].requests == 2); // the fast one is not counted
	CHECK(episodes[1].worst_ns == 16 * ms);
	CHECK(blame.slow[0].episode == 0);
	CHECK(blame.slow[4].episode == 1);
	REQUIRE(episodes[0].causes.size() == 1);
	CHECK(episodes[0].causes[0].cause == Cause::Unknown);
	CHECK(episodes[0].causes[0].share == Approx(1.0));
	CHECK(WorstEpisodes(episodes, 5) == std::vector<uint32_t>{1, 0});
	CHECK(WorstEpisodes(episodes, 1) == std::vector<uint32_t>{1});
}

TEST_CASE("an episode's causes are ranked and sum to its time")
{
	RunBuilder b;
	b.Thread(kServer, 0, 10 * ms);
	b.Frame(FT_FORK, 1 * ms, 2 * ms);
	b.Off(FT_FILE_WRITE, 3 * ms, 8 * ms, 8 * ms);
	b.Tally(FT_OWN_CODE, 0, 10 * ms, 4 * ms);
	b.Request(0, 0, 10 * ms);
	b.Request(1 * ms, 1 * ms, 9 * ms);
	b.Finish();
	Blame blame = b.Blame();
	std::vector<Episode> episodes = FindEpisodes(&blame);
	REQUIRE(episodes.size() == 1);
	REQUIRE(episodes[0].causes.size() == 3);
	CHECK(episodes[0].causes[0].cause == Cause::FileWrite);
	CHECK(episodes[0].causes[0].time_ns == 10 * ms);
	CHECK(episodes[0].causes[0].share == Approx(10.0 / 18));
	CHECK(episodes[0].causes[1].cause == Cause::ServerBusy);
	CHECK(episodes[0].causes[2].cause == Cause::Fork);
}

TEST_CASE("evidence of a fork has the copied pages, the child and Redis' own figure")
{
	RunBuilder b;
	OneRequest(&b, 60 * ms);
	b.Frame(FT_FORK, 10 * ms, 70 * ms, 0, 20 * ms).arg[0] = 4312;
	b.Off(FT_FORK, 20 * ms, 60 * ms, 60 * ms, 1); // blocked in it: not a separate fork
	b.Thread(4312, 65 * ms, 90 * ms, FT_THREAD_MAIN | FT_THREAD_CHILD, "snapshot child").parent_tgid =
	    kServer;
	b.run.series.push_back(
	    {"target.rss", "bytes", {{"pid", "100"}}, {{kBase + 5 * ms, 1.1e9}, {kBase + 80 * ms, 2e9}}});
	b.run.reports.push_back({kBase + 1 * ms, "server-word", 11, ""});
	b.run.reports.push_back({kBase + 99 * ms, "server-word", 59871, ""});
	b.Finish();
	std::string text = EvidenceOf(&b);
	holds(text, "fork() copied page tables for 60.0 ms (RSS 1.10 GB) as BGSAVE started snapshot child "
		    "4312; Redis "
		    "reports latest_fork_usec 59,871");
	CHECK(text.find(" 11") == std::string::npos);
}

TEST_CASE("a figure that Redis reports after a fork belongs to this fork only until the next one")
{
	RunBuilder b;
	OneRequest(&b, 20 * ms);
	b.Frame(FT_FORK, 10 * ms, 25 * ms);
	b.Frame(FT_FORK, 40 * ms, 45 * ms);
	b.run.reports.push_back({kBase + 50 * ms, "info", 5000, ""});
	b.Finish();
	std::string text = EvidenceOf(&b);
	holds(text, "fork() copied page tables for 15.0 ms\n");
}

TEST_CASE("evidence of copy-on-write counts spans and tallies and names the child")
{
	RunBuilder b;
	OneRequest(&b, 50 * ms);
	b.Frame(FT_COW_COPY, 10 * ms, 30 * ms, 0, 15 * ms);
	b.Off(FT_COW_COPY, 20 * ms, 25 * ms, 25 * ms, 1); // the same fault, blocked
	b.Frame(FT_COW_COPY, 40 * ms, 50 * ms);
	b.Tally(FT_COW_COPY, 0, 100 * ms, 20 * ms, 810);
	b.Thread(4312, 5 * ms, 90 * ms, FT_THREAD_MAIN | FT_THREAD_CHILD, "snapshot child").parent_tgid =
	    kServer;
	b.Finish();
	holds(EvidenceOf(&b),
	      "812 copy-on-write copies, 50.0 ms, longest 20.0 ms while snapshot child 4312 ran");
}

TEST_CASE("evidence in a run of several kernels has each kernel's own ids")
{
	RunBuilder b;
	OneRequest(&b, 60 * ms);
	b.run.spaces = 2;
	b.Frame(FT_COW_COPY, 10 * ms, 30 * ms);
	b.Thread((1 << 22) + 4313, 5 * ms, 90 * ms, FT_THREAD_MAIN | FT_THREAD_CHILD, "snapshot child")
	    .parent_tgid = kServer;
	b.Finish();
	holds(EvidenceOf(&b), "while snapshot child 4313 ran");
}

TEST_CASE("evidence of a blocked write names the file, the thread in fsync, and the disk")
{
	RunBuilder b;
	OneRequest(&b, 30 * ms);
	ft_span &write = b.Off(FT_FILE_WRITE, 10 * ms, 40 * ms, 40 * ms);
	write.syscall = 1;
	write.detail = 1;
	b.run.details.push_back(
	    {"appendonly.aof.1.incr.aof", {"io_schedule+0x1", "folio_wait_bit+0x2", "ext4_write"}});
	b.Thread(102, 0, 100 * ms, 0, "bio_aof_fsync", kServer);
	b.Frame(FT_FSYNC, 8 * ms, 42 * ms, 0, 0, 102).arg[1] = 75;
	ft_io io = {kBase + 9 * ms, 20 * ms, 0, 84'000'000, 254u << 20, 55, 1, 0, 0, "kworker/u4:1"};
	b.run.ios.push_back(io);
	io.start_ns = kBase + 60 * ms; // not while it was blocked
	b.run.ios.push_back(io);
	b.run.devices[254u << 20] = "vda";
	b.Finish();
	holds(EvidenceOf(&b),
	      "write() to appendonly.aof.1.incr.aof was blocked for 30.0 ms; bio_aof_fsync (102) was in "
	      "fdatasync() for 34.0 ms; meanwhile block device vda wrote 84.0 MB, most for "
	      "kworker/u4:1 (55)");
}

TEST_CASE("evidence of a wait for the disk has the disk's load and the writing processes")
{
	RunBuilder b;
	OneRequest(&b, 30 * ms);
	b.Frame(FT_FSYNC, 10 * ms, 40 * ms, 0, 1 * ms).arg[1] = 75;
	b.Off(FT_FSYNC, 11 * ms, 40 * ms, 40 * ms, 1);
	// Two at once for 10 ms, one for 5, none for 15.
	ft_io io = {kBase + 10 * ms, 10 * ms, 0, 3'000'000, 254u << 20, 55, 1, 0, 0, "kworker/u4:1"};
	b.run.ios.push_back(io);
	io = {kBase + 5 * ms, 20 * ms, 0, 1'000'000, 254u << 20, kServer, 1, 0, 0, "redis-server"};
	b.run.ios.push_back(io);
	io = {kBase + 10 * ms, 10 * ms, 0, 500'000, 253u << 20, 77, 1, 0, 0, "elsewhere"};
	b.run.ios.push_back(io);
	b.run.writes.push_back({kBase - 970 * ms, kBase - 900 * ms, 60'000'000, 254u << 20, 4377, "dd"});
	b.run.writes.push_back({kBase - 900 * ms, kBase - 800 * ms, 20'000'000, 254u << 20, 4377, "dd"});
	b.run.writes.push_back({kBase, kBase + 1 * ms, 9'000'000, 0, kServer, "redis-server"});
	b.run.writes.push_back({kBase, kBase + 1 * ms, 7'000'000, 0, 5, "little"});
	b.run.writes.push_back({kBase, kBase + 1 * ms, 99'000'000, 253u << 20, 77, "elsewhere"});
	b.run.writes.push_back(
	    {kBase - 8000 * ms, kBase - 7900 * ms, 99'000'000, 254u << 20, 78, "long ago"});
	b.run.devices[254u << 20] = "vda";
	b.Finish();
	holds(EvidenceOf(&b),
	      "fdatasync() on the serving thread took 30.0 ms; meanwhile block device vda "
	      "wrote 4.00 MB, most for kworker/u4:1 (55), then redis-server (100); the device was busy "
	      "50.0 % of the time, with 1.7 requests in flight on average; files were written by dd (4377), "
	      "80.0 MB in 1.01 s, redis-server (100), 9.00 MB");
}

TEST_CASE("evidence of a wait while the disk was idle has the kernel's reason, not the disk's figures")
{
	RunBuilder b;
	OneRequest(&b, 30 * ms);
	ft_span &sync = b.Off(FT_FSYNC, 10 * ms, 40 * ms, 40 * ms);
	sync.syscall = 75;
	sync.detail = 1;
	b.run.details.push_back(
	    {"nodes.conf", {"jbd2_log_wait_commit+0x1", "ext4_fsync_journal+0x2", "do_fsync+0x3"}});
	ft_io io = {kBase + 10 * ms, 1 * ms, 0, 3'000'000, 254u << 20, 55, 1, 0, 0, "kworker/u4:1"};
	const std::string sync_took = "fdatasync() of nodes.conf on the serving thread took 30.0 ms; ",
			  reason = "it waited for a commit of the file system's journal (kernel stack: "
				   "jbd2_log_wait_commit < ext4_fsync_journal < do_fsync)";
	SECTION("idle")
	{
		b.run.ios.push_back(io);
		b.Finish();
		holds(EvidenceOf(&b), sync_took + reason + "; no block device was busy meanwhile\n");
	}
	SECTION("unless records of its requests are missing")
	{
		b.run.ios.push_back(io);
		b.run.drops.push_back({kBase, kBase + 50 * ms, 1, FT_DROP_RING, FT_DROP_BLOCK_IO});
		b.Finish();
		holds(EvidenceOf(&b), sync_took + reason + "\n");
	}
	SECTION("a flush moves no data")
	{
		io.duration_ns = 15 * ms;
		io.bytes = 0;
		io.write = 3;
		b.run.ios.push_back(io);
		b.run.devices[254u << 20] = "vda";
		b.Finish();
		holds(EvidenceOf(&b), sync_took +
					  "meanwhile block device vda was busy with flushes or discards; the "
					  "device was busy 50.0 % of the time");
	}
}

TEST_CASE("evidence of a lock names its holder and what the holder did during the wait")
{
	RunBuilder b;
	OneRequest(&b, 40 * ms);
	b.Thread(101, 0, 100 * ms, 0, "mc-assocmaint", kServer);
	ft_span &wait = b.Off(FT_LOCK_WAIT, 10 * ms, 50 * ms, 50 * ms);
	wait.arg[0] = 0x7f0000001000;
	wait.arg[1] = 101 | uint64_t{101} << 32;
	wait.syscall = 202;
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 20 * ms, 1, 101);
	// The request's hop first, then the holder's, in explain's order.
	auto evidence = [&](bool resolved) {
		b.Finish();
		ThreadTimelines threads(b.run);
		std::vector<Timeline> timelines = {b.Timeline()};
		if (resolved)
			ResolveOthers(&threads, &timelines[0]);
		timelines.push_back(threads.Of(b.ThreadIndex(101)));
		Serving serving;
		serving.connections = {{{0, UINT64_MAX, 0}}};
		Blame blame = BlameRun(b.run, timelines, {1, 0}, {}, serving);
		std::vector<Episode> episodes = FindEpisodes(&blame);
		REQUIRE(episodes.size() == 1);
		FindEvidence(b.run, timelines, blame, ActivitiesOf(b.run), 10, 1, &episodes);
		uint64_t lock_ns = 0;
		for (const EpisodeCause &c : episodes[0].causes)
			lock_ns += c.cause == Cause::LockWait ? c.thread_ns : 0;
		std::string text = std::to_string(lock_ns / ms) + " ms of locks\n";
		for (const std::string &sentence : episodes[0].evidence)
			text += sentence + "\n";
		return text;
	};
	const std::string waited = "redis-server (100) waited ",
			  it_held = " for a lock that this thread held";
	SECTION("it ran")
	{
		b.CpuSample(20 * ms, b.Stack({"memcached", {{"work", "memcached"}}, {}}), FT_OWN_CODE, 101);
		std::string text = evidence(true);
		holds(text, "40 ms of locks");
		holds(text, "mc-assocmaint: " + waited + "40.0 ms" + it_held +
				"; meanwhile this thread ran work()\n");
	}
	SECTION("it ran a library's code")
	{
		b.CpuSample(20 * ms, b.Stack({"memcached", {{"memset", "libc.so.6"}}, {}}), FT_OWN_CODE, 101);
		holds(evidence(true), "meanwhile this thread was in memset of libc.so.6\n");
	}
	SECTION("it waited for a slow peer")
	{
		b.Off(FT_IDLE, 12 * ms, 48 * ms, 48 * ms, 0, 101).syscall = 7;
		holds(evidence(true), it_held + "; meanwhile this thread waited in poll()\n");
	}
	SECTION("it could not run for most of the time")
	{
		b.Off(FT_STOPPED, 11 * ms, 46 * ms, 46 * ms, 0, 101);
		std::string text = evidence(true);
		holds(text, "mc-assocmaint: the server was stopped (SIGSTOP) for 35.0 ms; " + waited +
				"35.0 ms" + it_held + "\n");
		holds(text, "mc-assocmaint: " + waited + "5.00 ms" + it_held +
				"; meanwhile this thread ran its own code");
	}
	SECTION("what another thread's time does not show is reported for the waiting thread")
	{
		holds(evidence(false),
		      "waited 40.0 ms for a lock held by mc-assocmaint (101), which ran its own "
		      "code\n");
	}
}

TEST_CASE("evidence of run-queue wait names the CPU holder over all waits")
{
	RunBuilder b;
	OneRequest(&b, 30 * ms);
	b.run.details.push_back({"stress-ng", {}});
	for (uint32_t i = 0; i < 3; i++) {
		ft_span &s = b.Off(FT_RUN_QUEUE, (10 + 20 * i) * ms, (10 + 20 * i) * ms, (20 + 20 * i) * ms);
		s.arg[1] = (4321 + i / 2) | (9 * ms) << 32;
		s.detail = 1;
		s.cpu = 1;
	}
	b.Finish();
	holds(EvidenceOf(&b),
	      "waited 30.0 ms on the run queue of cpu 1 (3 times); the CPU was held by stress-ng (2 "
	      "threads) for 27.0 ms");
}

TEST_CASE("evidence of run-queue wait says what is not known of it")
{
	RunBuilder b;
	OneRequest(&b, 50 * ms);
	ft_span &wait = b.Off(FT_RUN_QUEUE, 10 * ms, 10 * ms, 60 * ms);
	wait.cpu = 1;
	wait.queue_cpu = 2;
	auto slice = [&](uint64_t from, uint64_t to, uint32_t tid, const char *comm) {
		ft_cpu_slice one = {};
		one.start_ns = kBase + from;
		one.end_ns = kBase + to;
		one.tid = tid;
		one.cpu = 1;
		snprintf(one.comm.raw, sizeof one.comm.raw, "%s", comm);
		b.run.cpu_slices.push_back(one);
	};
	SECTION("no holder")
	{
		b.Finish();
		holds(EvidenceOf(&b),
		      "waited 50.0 ms on the run queue of cpu 1; which thread held the CPU was not "
		      "recorded");
	}
	SECTION("two holders in one wait, an idle CPU, and a rest")
	{
		slice(10 * ms, 20 * ms, 55, "dd");
		slice(20 * ms, 26 * ms, 56, "sh");
		slice(30 * ms, 50 * ms, 0, "swapper/1");
		b.Finish();
		holds(EvidenceOf(&b), "waited 50.0 ms on the run queue of cpu 1; the CPU was held by dd (55) "
				      "for 10.0 ms, sh (56) "
				      "for 6.00 ms and idle for 20.0 ms, until the kernel let the thread run "
				      "on it; 14.0 ms of the "
				      "wait are unattributed, because no CPU slice of them was recorded");
	}
	SECTION("only what is in the episode counts")
	{
		slice(0, 60 * ms, 55, "dd");
		b.run.requests.due_ns[0] = b.run.requests.sent_ns[0] = kBase + 40 * ms;
		b.Finish();
		holds(EvidenceOf(&b),
		      "waited 20.0 ms on the run queue of cpu 1; the CPU was held by dd (55) for 20.0 ms\n");
	}
}

TEST_CASE("evidence of a CPU quota names the cgroup that used it up")
{
	RunBuilder b;
	OneRequest(&b, 30 * ms);
	for (uint32_t i = 0; i < 3; i++)
		b.Off(FT_CPU_QUOTA, (10 + 20 * i) * ms, (10 + 20 * i) * ms, (20 + 20 * i) * ms).flags =
		    FT_SPAN_THROTTLED;
	SECTION("the only one")
	{
		b.run.quotas = {{kBase, kServer, "/pods/x", 20'000, 100'000}};
		b.Finish();
		holds(EvidenceOf(&b),
		      "the cgroup /pods/x had used up its CPU quota (20.0 ms of every 100 ms): the thread "
		      "waited 30.0 ms, throttled 3 times");
	}
	SECTION("of several the one that the kernel throttled")
	{
		b.run.quotas = {{kBase, kServer, "/pods/x", 20'000, 100'000},
				{kBase, kServer, "/pods", 50'000, 100'000}};
		b.run.series = {
		    {"cgroup.throttled", "ns", {{"cgroup", "/pods"}}, {{kBase, 0}, {kBase + 80 * ms, 3e7}}},
		    {"cgroup.throttled", "ns", {{"cgroup", "/pods/x"}}, {{kBase, 7e9}}}};
		b.Finish();
		holds(EvidenceOf(&b), "the cgroup /pods had used up its CPU quota (50.0 ms of every 100 ms)");
	}
	SECTION("one that was removed before, and one of another process, do not count")
	{
		b.run.quotas = {{kBase - 2 * ms, kServer, "/pods/x", 20'000, 100'000},
				{kBase - 1 * ms, kServer, "/pods/x", 0, 100'000},
				{kBase, kServer + 1, "/other", 20'000, 100'000}};
		b.Finish();
		holds(EvidenceOf(&b),
		      "the server's cgroup had used up its CPU quota: the thread waited 30.0 ms");
	}
}

TEST_CASE("evidence of other causes")
{
	RunBuilder b;
	SECTION("softirq")
	{
		OneRequest(&b, 32 * ms);
		b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 10 * ms, 42 * ms).cpu = 3;
		b.Finish();
		holds(EvidenceOf(&b), "softirq net_rx took 32.0 ms on cpu 3");
	}
	SECTION("a lock, with the kernel stack")
	{
		OneRequest(&b, 12 * ms);
		ft_span &s = b.Off(FT_LOCK_WAIT, 10 * ms, 22 * ms, 22 * ms);
		s.syscall = 202;
		s.detail = 1;
		b.run.details.push_back(
		    {"", {"schedule+0x2", "futex_wait_queue+0x1", "futex_wait", "do_futex"}});
		b.Finish();
		holds(EvidenceOf(&b),
		      "blocked in futex() for 12.0 ms; kernel stack: futex_wait_queue < futex_wait < "
		      "do_futex");
	}
	SECTION("an fsync by the server itself, blocked inside its frame")
	{
		OneRequest(&b, 31 * ms);
		b.Frame(FT_FSYNC, 10 * ms, 41 * ms, 0, 1 * ms).arg[1] = 75;
		b.Off(FT_FSYNC, 11 * ms, 41 * ms, 41 * ms, 1);
		b.Finish();
		holds(EvidenceOf(&b), "fdatasync() on the serving thread took 31.0 ms");
	}
	SECTION("stopped")
	{
		OneRequest(&b, 50 * ms);
		b.Off(FT_STOPPED, 10 * ms, 60 * ms, 60 * ms);
		b.Finish();
		holds(EvidenceOf(&b), "the server was stopped (SIGSTOP) for 50.0 ms");
	}
	SECTION("frozen, with a known cgroup")
	{
		OneRequest(&b, 80 * ms);
		b.Off(FT_FROZEN, 10 * ms, 50 * ms, 50 * ms);
		b.Off(FT_FROZEN, 60 * ms, 100 * ms, 100 * ms);
		b.run.frozen.push_back({kBase + 5 * ms, 99, "/other", "container other"});
		b.run.frozen.push_back({kBase + 10 * ms, kServer, "/docker/1f2e", "container web (1f2e)"});
		b.run.frozen.push_back({kBase + 900 * ms, kServer, "/later", ""});
		b.Finish();
		holds(EvidenceOf(&b), "the server's cgroup /docker/1f2e (container web (1f2e)) was frozen "
				      "for 80.0 ms (2 times)");
	}
	SECTION("frozen, with an unknown cgroup")
	{
		OneRequest(&b, 80 * ms);
		b.Off(FT_FROZEN, 10 * ms, 90 * ms, 90 * ms);
		b.Finish();
		holds(EvidenceOf(&b), "the server's cgroup was frozen for 80.0 ms");
	}
	SECTION("stopped by a tracer, mostly too briefly for spans")
	{
		OneRequest(&b, 80 * ms);
		b.Off(FT_PTRACED, 10 * ms, 50 * ms, 50 * ms).arg[0] = 77;
		b.Tally(FT_PTRACED, 50 * ms, 90 * ms, 40 * ms, 4210);
		b.run.tracers[77] = "strace";
		b.run.tracers[78] = "gdb";
		b.Finish();
		holds(EvidenceOf(&b), "was stopped 4,211 times by strace (pid 77), 80.0 ms in total");
	}
	SECTION("one long event-loop iteration")
	{
		OneRequest(&b, 0);
		b.Frame(FT_ITERATION, 10 * ms, 90 * ms).arg[0] = 2;
		b.Finish();
		holds(EvidenceOf(&b),
		      "the server ran its own code for 80.0 ms in one event-loop iteration of 80.0 ms "
		      "with 2 ready connections (a slow command or a long batch)");
	}
	SECTION("many short iterations")
	{
		OneRequest(&b, 0);
		b.Frame(FT_ITERATION, 10 * ms, 20 * ms);
		b.Finish();
		holds(
		    EvidenceOf(&b),
		    "the server ran its own code for 100 ms of these 100 ms, in many event-loop iterations");
	}
	SECTION("idleness")
	{
		OneRequest(&b, 80 * ms);
		b.Off(FT_IDLE, 10 * ms, 90 * ms, 90 * ms);
		b.Finish();
		holds(EvidenceOf(&b),
		      "the server was idle for 80.0 ms (longest 80.0 ms): requests or replies were on the "
		      "network, or the server held the requests, or the load generator (not recorded) did "
		      "not run");
	}
	SECTION("nothing recorded")
	{
		b.Thread(kServer, 0, 10 * ms);
		b.Request(0, 0, 100 * ms);
		b.Finish();
		holds(EvidenceOf(&b), "100 ms of the requests' time has no recorded cause");
	}
}

TEST_CASE("evidence of the network has what TCP did with the load generator's connections")
{
	RunBuilder b;
	OneRequest(&b, 80 * ms);
	b.Off(FT_IDLE, 10 * ms, 90 * ms, 90 * ms);
	b.Finish();
	ft_load_tcp tcp = {};
	tcp.t_ns = kBase + 100 * ms;
	tcp.before_ns = kBase - 20 * ms;
	auto evidence = [&] {
		b.run.load_tcp.push_back(tcp);
		return EvidenceOf(&b);
	};
	SECTION("nothing was sent again")
	{
		holds(evidence(),
		      "the load generator's sockets retransmitted nothing: none of these requests was lost "
		      "on its way");
	}
	SECTION("the look after the request is missing")
	{
		tcp.t_ns = kBase + 98 * ms;
		CHECK(evidence().find("load generator's sockets") == std::string::npos);
	}
	SECTION("segments were sent again")
	{
		tcp.retransmitted = 2;
		holds(evidence(), "the load generator's sockets retransmitted 2 segments on 1 connection\n");
	}
	SECTION("since a look long before, and windows were full")
	{
		tcp.before_ns = kBase - 1900 * ms;
		tcp.retransmitted = 2;
		tcp.receiver_limited_us = 80'000;
		holds(evidence(),
		      "2 segments on 1 connection; they waited 80.0 ms for the server's receive window "
		      "within 2.00 s\n");
	}
	SECTION("at another time")
	{
		tcp.t_ns = kBase + 150 * ms;
		CHECK_FALSE(contains(evidence(), "sockets"));
	}
	SECTION("of a connection without slow requests")
	{
		tcp.connection = 7;
		CHECK_FALSE(contains(evidence(), "sockets"));
	}
}

TEST_CASE("evidence is of the thread where a cause was, also without a request log")
{
	RunBuilder b;
	for (uint32_t tid : {kServer, kServer + 1})
		b.Thread(tid, 0, 100 * ms, FT_THREAD_MAIN, "memcached", kServer);
	b.Frame(FT_ITERATION, 0, 60 * ms);
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms);
	b.Frame(FT_ITERATION, 1 * ms, 59 * ms, 0, UINT64_MAX, kServer + 1);
	b.Off(FT_PTRACED, 1 * ms, 59 * ms, 59 * ms, 0, kServer + 1).arg[0] = 77;
	b.run.tracers[77] = "strace";
	b.Finish();
	std::vector<Timeline> timelines;
	timelines.push_back(b.Timeline());
	timelines.push_back(b.Timeline(kServer + 1));
	Blame blame = BlameRun(b.run, timelines, {1, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);
	REQUIRE(episodes.size() == 1);
	FindEvidence(b.run, timelines, blame, ActivitiesOf(b.run), 10, 1, &episodes);
	REQUIRE(episodes[0].evidence.size() == 2);
	holds(episodes[0].evidence[0], "the server ran its own code for 60.0 ms");
	holds(episodes[0].evidence[1], "was stopped 1 time by strace (pid 77), 58.0 ms in total");
}

TEST_CASE("a smaller cause never takes the place of one without an event")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Finish();
	std::vector<Timeline> timelines;
	timelines.push_back(b.Timeline());
	Blame blame = BlameRun(b.run, timelines, {1, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);
	REQUIRE(episodes.size() == 1);
	episodes[0].causes.insert(episodes[0].causes.begin(), {Cause::Ptrace, 0, 42 * ms, 0.42});
	FindEvidence(b.run, timelines, blame, ActivitiesOf(b.run), 1, 1, &episodes);
	REQUIRE(!episodes[0].evidence.empty());
	CHECK(episodes[0].evidence[0] ==
	      "ptrace took 42.0 ms of the requests' time, of which no event was recorded");
	CHECK(episodes[0].evidence_of[0] == Cause::Ptrace);
}

TEST_CASE("evidence stays within its limit, the largest cause first")
{
	RunBuilder b;
	OneRequest(&b, 80 * ms);
	b.Frame(FT_FORK, 10 * ms, 30 * ms);
	b.Off(FT_STOPPED, 30 * ms, 90 * ms, 90 * ms);
	b.Finish();
	std::string one = EvidenceOf(&b, 1);
	holds(one, "SIGSTOP");
	CHECK(one.find("fork") == std::string::npos);
}
