// SPDX-License-Identifier: MIT
// The first line of an answer names what happened, how long it took and its share, whatever the cause.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/evidence.h"
#include "analysis/explain/scene.h"
#include "analysis/text.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// The culprit of a run, over all its episodes.
std::string CulpritOf(RunBuilder *b)
{
	b->Finish();
	std::vector<Timeline> timelines;
	timelines.push_back(b->Timeline());
	Blame blame = BlameRun(b->run, timelines, {1, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);
	Culprits culprits = {{blame.causes[0].cause, {}}};
	FindEvidence(b->run, timelines, blame, ActivitiesOf(b->run), 10, 10, &episodes, {}, {}, &culprits);
	return culprits.begin()->second.clause;
}

// One request over the whole of a thread of 100 ms that ran its own code except for what the test adds.
void OneRequest(RunBuilder *b, uint64_t covered)
{
	b->Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
	b->Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms - covered);
	b->Request(0, 0, 100 * ms);
}

void Child(RunBuilder *b, uint32_t tid, uint64_t from_ns, const char *role)
{
	b->Thread(tid, from_ns, 99 * ms, FT_THREAD_MAIN | FT_THREAD_CHILD, role).parent_tgid = kServer;
}

} // namespace

TEST_CASE("culprit: forks are counted, with the command that needed them")
{
	RunBuilder b;
	SECTION("one")
	{
		OneRequest(&b, 60 * ms);
		b.Frame(FT_FORK, 10 * ms, 70 * ms).arg[0] = 4312;
		Child(&b, 4312, 65 * ms, "AOF rewrite child");
		CHECK(CulpritOf(&b) == "fork() for BGREWRITEAOF took 60.0 ms");
	}
	SECTION("two commands, the longest first")
	{
		OneRequest(&b, 60 * ms);
		b.Frame(FT_FORK, 10 * ms, 50 * ms).arg[0] = 4312;
		b.Frame(FT_FORK, 60 * ms, 80 * ms).arg[0] = 4313;
		Child(&b, 4312, 45 * ms, "snapshot child");
		Child(&b, 4313, 75 * ms, "AOF rewrite child");
		CHECK(CulpritOf(&b) ==
		      "2 fork() calls for BGSAVE and BGREWRITEAOF took 60.0 ms, the longest 40.0 ms");
	}
	SECTION("two of one kind, and one too short to name")
	{
		OneRequest(&b, 61 * ms);
		b.Frame(FT_FORK, 10 * ms, 50 * ms).arg[0] = 4312;
		b.Frame(FT_FORK, 60 * ms, 80 * ms).arg[0] = 4313;
		b.Frame(FT_FORK, 90 * ms, 91 * ms).arg[0] = 4314;
		Child(&b, 4312, 45 * ms, "snapshot child");
		Child(&b, 4313, 75 * ms, "snapshot child");
		CHECK(CulpritOf(&b) == "3 fork() calls for BGSAVE took 61.0 ms, the longest 40.0 ms");
	}
}

TEST_CASE("culprit: a fork for a replica, with what INFO says")
{
	RunBuilder b;
	OneRequest(&b, 60 * ms);
	b.Frame(FT_FORK, 10 * ms, 70 * ms).arg[0] = 4312;
	auto info = [&](const char *field, double before, double after) {
		b.run.series.push_back({field, "", {}, {{kBase + 5 * ms, before}, {kBase + 80 * ms, after}}});
	};
	SECTION("without a file")
	{
		Child(&b, 4312, 65 * ms, "replica sync child");
		CHECK(CulpritOf(&b) == "fork() for a replica's full synchronization took 60.0 ms");
	}
	SECTION("with a file, which BGSAVE may want too")
	{
		Child(&b, 4312, 65 * ms, "snapshot child");
		info("redis.sync_full", 0, 1);
		info("redis.client_output_buffer_limit_disconnections", 2, 2);
		CHECK(CulpritOf(&b) ==
		      "fork() for a snapshot (INFO: sync_full rose from 0 to 1, a replica's full "
		      "synchronization) took 60.0 ms");
	}
	SECTION("no rise")
	{
		Child(&b, 4312, 65 * ms, "snapshot child");
		info("redis.sync_full", 1, 1);
		CHECK(CulpritOf(&b) == "fork() for BGSAVE took 60.0 ms");
	}
}

TEST_CASE("culprit: page faults are counted and name the child")
{
	RunBuilder b;
	OneRequest(&b, 60 * ms);
	b.Frame(FT_COW_COPY, 10 * ms, 30 * ms);
	b.Tally(FT_COW_COPY, 0, 100 * ms, 40 * ms, 811);
	Child(&b, 4312, 5 * ms, "snapshot child");
	CHECK(CulpritOf(&b) == "812 copy-on-write copies while the snapshot child ran took 60.0 ms");
}

TEST_CASE("culprit: the threads that held the CPU")
{
	RunBuilder b;
	OneRequest(&b, 60 * ms);
	b.run.details.push_back({"stress-ng", {}});
	b.run.details.push_back({"python3", {}});
	auto wait = [&](uint64_t from, uint64_t to, uint32_t tid, uint16_t detail) {
		ft_span &s = b.Off(FT_RUN_QUEUE, from, from, to);
		s.arg[1] = tid | (to - from) << 32;
		s.detail = detail;
		s.cpu = 1;
	};
	wait(10 * ms, 40 * ms, 4321, 1);
	SECTION("one thread")
	{
		wait(50 * ms, 80 * ms, 4321, 1);
		CHECK(CulpritOf(&b) ==
		      "stress-ng (4321) held CPU 1 for 60.0 ms while redis-server (100) was ready to run");
	}
	SECTION("several of one name")
	{
		wait(50 * ms, 80 * ms, 4322, 1);
		CHECK(CulpritOf(&b) ==
		      "stress-ng (2 threads) held CPU 1 for 60.0 ms while redis-server (100) was "
		      "ready to run");
	}
	SECTION("holders that are known for little of the time")
	{
		ft_span &s = b.Off(FT_RUN_QUEUE, 45 * ms, 45 * ms, 95 * ms);
		s.cpu = 1;
		CHECK(
		    CulpritOf(&b) ==
		    "redis-server (100) waited 80.0 ms for a CPU that stress-ng (4321) held for 30.0 ms; for "
		    "50.0 ms the CPU holder was not recorded (perf sched record shows it)");
	}
	SECTION("short waits have no holders")
	{
		b.run.min_span_ns = 20'000;
		b.Tally(FT_RUN_QUEUE, 45 * ms, 95 * ms, 50 * ms);
		CHECK(
		    CulpritOf(&b) ==
		    "redis-server (100) waited 80.0 ms for a CPU that stress-ng (4321) held for 30.0 ms; "
		    "50.0 ms are waits of less than 20.0 us, whose CPU holders are recorded with --min-span "
		    "1us");
	}
	SECTION("two programs")
	{
		wait(50 * ms, 79 * ms, 4400, 2);
		CHECK(CulpritOf(&b) == "redis-server (100) waited 59.0 ms for a CPU that stress-ng (4321) "
				       "and python3 (4400) held");
	}
}

TEST_CASE("culprit: what kept the process from running")
{
	RunBuilder b;
	OneRequest(&b, 80 * ms);
	SECTION("a quota")
	{
		b.Off(FT_CPU_QUOTA, 10 * ms, 10 * ms, 50 * ms).flags = FT_SPAN_THROTTLED;
		b.Off(FT_CPU_QUOTA, 60 * ms, 60 * ms, 100 * ms).flags = FT_SPAN_THROTTLED;
		b.run.quotas = {{kBase, kServer, "/pods/x", 20'000, 100'000}};
		CHECK(CulpritOf(&b) == "The cgroup /pods/x used up its CPU quota 2 times (20.0 ms of every "
				       "100 ms) and waited 80.0 ms");
	}
	SECTION("a signal")
	{
		b.Off(FT_STOPPED, 10 * ms, 90 * ms, 90 * ms);
		CHECK(CulpritOf(&b) == "redis-server (100) was stopped by SIGSTOP for 80.0 ms");
	}
	SECTION("a freezer")
	{
		b.Off(FT_FROZEN, 10 * ms, 90 * ms, 90 * ms);
		b.run.frozen.push_back({kBase + 10 * ms, kServer, "/docker/1f2e", "container web"});
		CHECK(CulpritOf(&b) ==
		      "The server's cgroup /docker/1f2e (container web) was frozen for 80.0 ms");
	}
	SECTION("a tracer")
	{
		b.Off(FT_PTRACED, 10 * ms, 90 * ms, 90 * ms).arg[0] = 77;
		b.run.tracers[77] = "strace";
		CHECK(CulpritOf(&b) == "strace (pid 77) stopped redis-server (100) for 80.0 ms");
	}
	SECTION("soft interrupts")
	{
		b.Frame(static_cast<ft_owner>(FT_SOFTIRQ + 3), 10 * ms, 90 * ms).cpu = 3;
		CHECK(CulpritOf(&b) == "Soft interrupts (net_rx) took 80.0 ms of the time of CPU 3");
	}
}

TEST_CASE("culprit: files and disks")
{
	RunBuilder b;
	SECTION("a write behind another thread's fsync")
	{
		OneRequest(&b, 50 * ms);
		b.run.details.push_back({"appendonly.aof", {}});
		ft_span &s = b.Off(FT_FILE_WRITE, 10 * ms, 60 * ms, 60 * ms);
		s.syscall = 1;
		s.detail = 1;
		b.Thread(101, 0, 100 * ms, 0, "bio_aof_fsync").tgid = kServer;
		ft_span &fsync = b.Frame(FT_FSYNC, 5 * ms, 61 * ms);
		fsync.tid = 101;
		fsync.arg[1] = 75;
		CHECK(CulpritOf(&b) == "write() to appendonly.aof waited 50.0 ms behind fsync");
	}
	SECTION("the server's own fsync, of an unknown file")
	{
		OneRequest(&b, 61 * ms);
		b.Frame(FT_FSYNC, 10 * ms, 71 * ms, 0, 61 * ms).arg[1] = 75;
		CHECK(CulpritOf(&b) == "fdatasync() by redis-server (100) took 61.0 ms");
	}
	SECTION("the server's own fsync, traced as a call that waits")
	{
		OneRequest(&b, 61 * ms);
		b.Frame(FT_FSYNC, 10 * ms, 71 * ms, 0, 1 * ms).arg[1] = 75;
		b.run.details.push_back({"nodes.conf", {}});
		b.Off(FT_FSYNC, 11 * ms, 71 * ms, 71 * ms, 1).detail = 1;
		CHECK(CulpritOf(&b) == "fdatasync() of nodes.conf by redis-server (100) took 61.0 ms");
	}
	SECTION("fsyncs of several files")
	{
		OneRequest(&b, 61 * ms);
		b.run.details.push_back({"nodes.conf", {}});
		b.run.details.push_back({"temp-1.rdb", {}});
		auto sync = [&](uint64_t from, uint64_t to, uint32_t file) {
			ft_span &s = b.Off(FT_FSYNC, from, to, to);
			s.syscall = 75;
			s.detail = file;
		};
		sync(10 * ms, 40 * ms, 1);
		sync(50 * ms, 81 * ms, 2);
		CHECK(CulpritOf(&b) ==
		      "fdatasync() of temp-1.rdb and others by redis-server (100) took 61.0 ms");
	}
	SECTION("a write that a frozen file system held up")
	{
		OneRequest(&b, 50 * ms);
		b.run.details.push_back(
		    {"appendonly.aof", {"percpu_rwsem_wait+0x1", "__percpu_down_read+0x2", "vfs_write+0x3"}});
		ft_span &s = b.Off(FT_FILE_WRITE, 10 * ms, 60 * ms, 60 * ms);
		s.syscall = 1;
		s.detail = 1;
		CHECK(CulpritOf(&b) ==
		      "write() to appendonly.aof waited 50.0 ms for its file system, which was "
		      "frozen (fsfreeze, or a snapshot of the disk)");
	}
}

TEST_CASE("culprit: a write that blocked on a pipe, and its reader")
{
	RunBuilder b;
	OneRequest(&b, 50 * ms);
	b.run.details.push_back({"pipe:[4711]", {"anon_pipe_write+0x1", "vfs_write+0x2"}});
	b.run.details.push_back({"terminal pts/3", {"n_tty_write+0x1"}});
	ft_span &s = b.Off(FT_SYSCALL, 10 * ms, 60 * ms, 60 * ms);
	s.syscall = 1;
	s.detail = 1;
	s.arg[0] = 1;
	auto look = [&](uint64_t at, std::vector<PipeEnd> ends, uint64_t inode = 4711) {
		b.run.pipes.push_back({kBase + at, kServer, 1, inode, std::move(ends)});
	};
	const std::string begin = "redis-server (100) was blocked in write() to fd 1 (stdout), ",
			  end = ", for 50.0 ms";
	SECTION("not looked up")
	{
		CHECK(CulpritOf(&b) == begin + "a pipe" + end);
	}
	SECTION("another pipe's reader is not this one's")
	{
		look(30 * ms, {{7, "tee", "S"}}, 4712);
		CHECK(CulpritOf(&b) == begin + "a pipe" + end);
	}
	SECTION("did not read")
	{
		look(30 * ms, {{7, "logger", "S"}});
		CHECK(CulpritOf(&b) == begin + "a pipe that logger (7) did not read" + end);
	}
	SECTION("stopped")
	{
		look(5 * ms, {{7, "logger", "S"}});
		look(30 * ms, {{7, "logger", "T"}});
		CHECK(CulpritOf(&b) == begin + "a pipe whose reader logger (7) was stopped" + end);
	}
	SECTION("stopped at another time")
	{
		look(90 * ms, {{7, "logger", "T"}});
		CHECK(CulpritOf(&b) == begin + "a pipe that logger (7) did not read" + end);
	}
	SECTION("several")
	{
		look(30 * ms, {{7, "sh", "S"}, {8, "tee", "T"}, {9, "cat", "S"}});
		CHECK(CulpritOf(&b) == begin + "a pipe that sh (7), tee (8) and 1 other did not read" + end);
	}
	SECTION("none that the recorder sees")
	{
		look(30 * ms, {});
		CHECK(CulpritOf(&b) == begin + "a pipe whose reader the recorder cannot see" + end);
	}
	SECTION("a terminal")
	{
		s.detail = 2;
		CHECK(CulpritOf(&b) == begin + "the terminal pts/3" + end);
	}
}

TEST_CASE("culprit: what the server's own code was")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Frame(FT_ITERATION, 0, 100 * ms).arg[0] = 1;
	SECTION("a script")
	{
		b.CpuSamples(0, 100, b.StackIn("evalCommand"));
		CHECK(CulpritOf(&b) == "EVAL (Lua script) took 100 ms of CPU in 1 event-loop iteration");
	}
	SECTION("TLS handshakes, whatever else is on the stack")
	{
		Stack stack;
		stack.program = "redis-server";
		stack.frames.push_back({"bn_mul_mont", "libcrypto.so.3"});
		stack.frames.push_back({"SSL_do_handshake", "libssl.so.3"});
		stack.frames.push_back({"tlsHandleEvent", "redis-server"});
		b.run.spans[b.run.spans.size() - 1].arg[1] = 600ULL << 32; // accepted
		b.CpuSamples(0, 100, b.Stack(stack));
		CHECK(CulpritOf(&b) ==
		      "TLS handshakes of about 600 connections took 100 ms of CPU in 1 event-loop iteration");
	}
	SECTION("TLS code without new connections is no handshake")
	{
		b.CpuSamples(0, 100, b.StackIn("", "libcrypto.so.3"));
		CHECK(CulpritOf(&b) ==
		      "TLS (libssl, libcrypto) took 100 ms of CPU in 1 event-loop iteration");
	}
	SECTION("a script of an unnamed command, as the slow log has it")
	{
		b.CpuSamples(0, 100, b.StackIn("@", "liblua5.1.so.0"));
		SECTION("without a slow log")
		{
			CHECK(CulpritOf(&b) ==
			      "A Lua script (EVAL or FCALL) took 100 ms of CPU in 1 event-loop iteration");
		}
		SECTION("with one")
		{
			for (const char *entry :
			     {R"({"duration_us":101000,"command":["fcall","f","0"]})",
			      R"({"duration_us":40000,"command":["GET","k"]})", R"({"duration_us":99500})"})
				b.run.reports.push_back({kBase + 101 * ms, "slowlog", 0, entry});
			CHECK(CulpritOf(&b) ==
			      "FCALL (Lua script) took 100 ms of CPU in 1 event-loop iteration");
		}
	}
	SECTION("a transaction")
	{
		Stack stack;
		stack.program = "redis-server";
		for (const char *f : {"setCommand", "call", "execCommand", "call"})
			stack.frames.push_back({f, "redis-server"});
		b.CpuSamples(0, 100, b.Stack(stack));
		b.run.reports.push_back(
		    {kBase + 1 * ms, "transaction", 0, R"({"tid":100,"commands":150000})"});
		CHECK(CulpritOf(&b) == "One transaction (EXEC) of 150,000 commands took 100 ms of CPU in 1 "
				       "event-loop iteration");
	}
	SECTION("mostly one thing")
	{
		b.CpuSamples(0, 60, b.StackIn("performEvictions"));
		b.CpuSamples(60 * ms, 40, b.StackIn("keysCommand"));
		CHECK(CulpritOf(&b) ==
		      "Eviction of keys took 60.0 ms of the 100 ms that redis-server (100) ran its own code");
	}
	SECTION("several things")
	{
		b.CpuSamples(0, 40, b.StackIn("performEvictions"));
		b.CpuSamples(40 * ms, 30, b.StackIn("keysCommand"));
		b.CpuSamples(70 * ms, 30, b.StackIn("writeToClient"));
		CHECK(CulpritOf(&b).find(
			  "redis-server (100) ran its own code for 100 ms (Eviction of keys 40 %, ") == 0);
	}
	SECTION("no samples")
	{
		CHECK(CulpritOf(&b) == "redis-server (100) ran its own code for 100 ms in 1 event-loop "
				       "iteration, without CPU samples");
	}
}

TEST_CASE("culprit: a fork in two episodes counts once")
{
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 40 * ms);
	b.Frame(FT_FORK, 10 * ms, 70 * ms).arg[0] = 4312;
	Child(&b, 4312, 65 * ms, "snapshot child");
	b.Request(5 * ms, 5 * ms, 30 * ms);
	b.Request(40 * ms, 40 * ms, 72 * ms);
	CHECK(CulpritOf(&b) == "fork() for BGSAVE took 60.0 ms");
}

TEST_CASE("culprit: of more episodes than have evidence the clause says so")
{
	RunBuilder b;
	b.Thread(kServer, 0, 2000 * ms, FT_THREAD_MAIN, "redis-server");
	for (uint64_t i = 0; i < 12; i++) {
		b.Off(FT_STOPPED, i * 100 * ms, i * 100 * ms + 10 * ms, i * 100 * ms + 10 * ms);
		b.Request(i * 100 * ms, i * 100 * ms, i * 100 * ms + 10 * ms);
	}
	CHECK(CulpritOf(&b) ==
	      "redis-server (100) was stopped by SIGSTOP for 100 ms in the 10 worst of 12 episodes");
}

TEST_CASE("culprit: the load generator that was not recorded")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Loop("constant");
	b.run.requests.sent_ns[0] = kBase + 90 * ms;
	CHECK(CulpritOf(&b) == "The load generator sent requests late, 90.0 ms added up over requests");
}

TEST_CASE("culprit: keys without a server")
{
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
	b.Request(0, 0, 100 * ms);
	b.run.reports.push_back({kBase + 90 * ms, "outage", 0,
				 R"({"server":"10.0.0.1:6379","after":"10.0.0.2:6379","last_ok_ns":)" +
				     std::to_string(kBase) + R"(,"first_ok_ns":)" +
				     std::to_string(kBase + 80 * ms) + "}"});
	b.Finish();
	Blame blame = b.Blame({1, 0});
	std::vector<Timeline> timelines;
	timelines.push_back(b.Timeline());
	std::vector<Episode> episodes = FindEpisodes(&blame);
	blame.causes.resize(1);
	blame.causes[0].cause = Cause::NoServer;
	for (EpisodeCause &cause : episodes[0].causes)
		cause.cause = Cause::NoServer;
	Culprits culprits = {{Cause::NoServer, {}}};
	FindEvidence(b.run, timelines, blame, ActivitiesOf(b.run), 10, 10, &episodes, {}, {}, &culprits);
	CHECK(culprits[Cause::NoServer].clause ==
	      "The keys of 10.0.0.1:6379 had no server for 80.0 ms, until 10.0.0.2:6379 served them");
}

TEST_CASE("culprit: several episodes are added up, nothing twice")
{
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms, FT_THREAD_MAIN, "redis-server");
	b.Tally(FT_OWN_CODE, 0, 100 * ms, 40 * ms);
	b.Off(FT_STOPPED, 10 * ms, 40 * ms, 40 * ms);
	b.Off(FT_STOPPED, 60 * ms, 90 * ms, 90 * ms);
	b.Request(10 * ms, 10 * ms, 41 * ms);
	b.Request(55 * ms, 55 * ms, 91 * ms);
	CHECK(CulpritOf(&b) == "redis-server (100) was stopped by SIGSTOP for 60.0 ms");
}

namespace
{

// A run of 1,000 requests with a p99.9 of 31.3 ms, a cause a row.
Explained ExplainedBy(const std::vector<CauseRow> &causes)
{
	Explained e;
	e.blame.count = 1000;
	e.blame.slow.resize(1);
	e.blame.latencies = {1 * ms, 2 * ms, 5 * ms, 31'300 * us, 32 * ms, 33 * ms, 0};
	e.blame.causes = causes;
	e.lead = FindLead(e.blame, UsualFigure());
	return e;
}

CauseRow Row(Cause cause, double share, uint64_t without_p99_9)
{
	CauseRow row = {cause, 1, 0, 0, share, {1 * ms, 2 * ms, 5 * ms, without_p99_9, 32 * ms, 33 * ms, 0}};
	return row;
}

} // namespace

TEST_CASE("answer: share, cause and what-if percentile follow the culprit")
{
	Explained e = ExplainedBy({Row(Cause::Fork, 0.55, 8'900 * us)});
	e.culprits[Cause::Fork].clause = "fork() for BGREWRITEAOF took 43.7 ms";
	CHECK(AnswerText(e) ==
	      "fork() for BGREWRITEAOF took 43.7 ms: 55.0 % of the slow requests' time (fork). Without forks "
	      "p99.9 would be 8.90 ms instead of 31.3 ms.");
	e.culprits[Cause::Fork].meanwhile = "Meanwhile a peer slept.";
	CHECK(AnswerText(e).ends_with(" instead of 31.3 ms. Meanwhile a peer slept."));
	e.culprits.clear();
	CHECK(AnswerText(e).starts_with("fork() copying page tables"));
	CHECK(std::string(AnswerOf(e).kind) == "cause");
	e.blame.slow.clear();
	e.blame.threshold_ns = 2'000'000;
	e.lead = FindLead(e.blame, UsualFigure());
	CHECK(AnswerText(e) == "Nothing was slow: no request took 2.00 ms or more.");
	CHECK(std::string(AnswerOf(e).kind) == "none");
}

TEST_CASE("answer: time without a cause comes first if it is the largest share, or half")
{
	Explained e =
	    ExplainedBy({Row(Cause::ClientLate, 0.2, 31'300 * us), Row(Cause::Unknown, 0.8, 1 * ms)});
	CHECK(AnswerText(e) ==
	      "80.0 % of the slow requests' time has no recorded cause (unknown): the server was not "
	      "recorded. Run forktail record on its host during the load.");
	CHECK(std::string(AnswerOf(e).kind) == "unattributed");
	e.run.drops.push_back({});
	e.run.drops[0].count = 1204;
	e.run.drops[0].start_ns = 3'900'000'000;
	e.run.drops[0].end_ns = 4'100'000'000;
	SlowRequest &slow = e.blame.slow[0];
	slow.due_ns = slow.since_ns = 4'150'000'000; // when they were dropped, nothing was slow
	slow.latency_ns = 50'000'000;
	CHECK(AnswerText(e).find("(unknown): the server was not recorded.") != std::string::npos);
	slow.since_ns = 4'050'000'000; // it queued
	CHECK(AnswerText(e) ==
	      "80.0 % of the slow requests' time has no recorded cause (unknown): 1,204 events were dropped "
	      "between +3.900 s and +4.100 s.");
}

TEST_CASE(
    "answer: the load generator's delays are an error of measurement, beside the server's largest cause")
{
	Explained e = ExplainedBy({Row(Cause::ClientLate, 0.7, 25 * ms), Row(Cause::RunQueue, 0.3, 16 * ms)});
	e.culprits[Cause::RunQueue].clause = "redis-server (1) waited 300 ms for a CPU that python3 held";
	e.culprits[Cause::ClientLate].clause = "The load generator waited 2.86 s for a CPU";
	CHECK(AnswerText(e) ==
	      "redis-server (1) waited 300 ms for a CPU that python3 held: 30.0 % of the slow "
	      "requests' time (run-queue). Without these waits for a CPU p99.9 would be 16.0 ms instead "
	      "of 31.3 ms. The load generator itself delayed 70.0 % of this time (client-late).");
	Explained late =
	    ExplainedBy({Row(Cause::ClientLate, 0.7, 9 * ms), Row(Cause::RunQueue, 0.3, 31'300 * us)});
	late.culprits = e.culprits;
	CHECK(AnswerText(late) ==
	      "The load generator itself delayed 70.0 % of the slow requests' time (client-late), which "
	      "is an error of measurement: it waited 2.86 s for a CPU; besides, redis-server (1) waited "
	      "300 ms for a CPU that python3 held: 30.0 % of that time (run-queue).");
}

TEST_CASE("answer: the network is named without a doubt only if the server's kernel saw the requests")
{
	Explained e = ExplainedBy({Row(Cause::Network, 0.94, 1 * ms)});
	e.blame.causes[0].direct_ns = 100 * ms;
	e.run.servers = {"10.0.0.7:6379"};
	CHECK(AnswerText(e) == "The server was idle and no answer came: the network delayed data, or the "
			       "server held the requests: 94.0 % "
			       "of the slow requests' time (network). Without it p99.9 would be 1.00 ms "
			       "instead of 31.3 ms. To see which, "
			       "record with --requests.");
	CHECK(!AnswerOf(e).sure);
	e.run.servers = {"127.0.0.1:6379"};
	CHECK(AnswerText(e).starts_with(
	    "The server was idle and no answer came: something between it and the load "
	    "generator on this host delayed data, or the server held the requests: "));
	e.blame.split = {10, 90 * ms, 0, 5 * ms, 0};
	CHECK(AnswerText(e).starts_with("Requests or replies were outside the server's host: 94.0 % of"));
	CHECK(AnswerOf(e).sure);
}
