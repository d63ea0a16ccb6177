// SPDX-License-Identifier: MIT
// Events as they are read from the ring buffer, one by one, and the records made from them.
#include "tests/support/catch.h"
#include "tests/unit/loader/support.h"

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "loader/output.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t us = 1000, ms = 1'000'000, kStart = 5'000 * ms;

// The recorder's internals without a kernel: events that are put in become a recording.
struct Drained {
	Written written;
	threads all = {};
	drain d = {};

	Drained()
	{
		d.writer = written.writer();
		d.threads = &all;
	}
	~Drained()
	{
		drain_free(&d);
		threads_free(&all);
	}
	template <typename Event> void put(const Event &e, size_t bytes = sizeof(Event))
	{
		// Of exactly that size, so that a sanitizer reports a read beyond its end.
		std::unique_ptr<char[]> event(new char[bytes]);
		memcpy(event.get(), &e, bytes);
		drain_event(&d, event.get(), bytes);
	}
};

ft_event_span span(uint64_t start_ns, uint64_t duration_ns)
{
	ft_event_span e = {};
	e.type = FT_EVENT_SPAN;
	e.tid = 100;
	e.start_ns = start_ns;
	e.duration_ns = duration_ns;
	e.owner = FT_LOCK_WAIT;
	e.syscall = 202;
	e.off_cpu = 1;
	return e;
}

ft_event_span_detail detail(uint64_t start_ns, uint64_t duration_ns, const std::string &name,
			    const std::vector<uint64_t> &stack)
{
	ft_event_span_detail e = {};
	e.span = span(start_ns, duration_ns);
	e.span.type = FT_EVENT_SPAN_DETAIL;
	name.copy(e.name, sizeof e.name);
	e.stack_bytes = static_cast<int32_t>(stack.size() * sizeof stack[0]);
	std::copy(stack.begin(), stack.end(), e.stack);
	return e;
}

struct HeldSlice {
	uint32_t tid;
	uint64_t from_us; // after kStart
	const char *comm;
};

// A wait for CPU 3 of [from, until) us, with that CPU's slices. The last one is the waiter's own.
ft_event_span_detail wait_for_cpu(uint64_t from_us, uint64_t until_us, const std::vector<HeldSlice> &slices,
				  uint32_t newest = 5)
{
	ft_event_span_detail e = detail(kStart + from_us * us, (until_us - from_us) * us, "", {});
	e.span.runnable_ns = e.span.duration_ns;
	e.span.cpu = 3;
	e.queue_cpu = 3;
	e.wake_ns = e.span.start_ns;
	e.newest = newest;
	for (size_t i = 0; i < slices.size(); i++) {
		cpu_slice &s = e.slices[(newest + FT_CPU_SLICES - (slices.size() - 1 - i)) % FT_CPU_SLICES];
		s.tid = slices[i].tid;
		s.start_ns = kStart + slices[i].from_us * us;
		strncpy(s.comm, slices[i].comm, sizeof s.comm);
	}
	return e;
}

void check_slice(const ft_cpu_slice &t, uint32_t tid, uint64_t from_us, uint64_t until_us,
		 const std::string &comm)
{
	INFO(comm << " from " << from_us);
	CHECK(t.tid == tid);
	CHECK(t.start_ns == kStart + from_us * us);
	CHECK(t.end_ns == kStart + until_us * us);
	CHECK(t.comm.raw == comm);
	CHECK(t.cpu == 3);
}

} // namespace

TEST_CASE("a span is written unchanged")
{
	Drained drained;
	ft_event_span e = span(kStart, 40 * us);
	e.on_cpu_ns = 1;
	e.runnable_ns = 2;
	e.blocked_ns = 3;
	e.owner = FT_FILE_READ;
	e.arg[0] = 4;
	e.arg[1] = 5;
	e.cpu = 6;
	e.depth = 7;
	e.flags = FT_SPAN_UNFINISHED;
	drained.put(e);
	CHECK(drained.d.spans == 1);
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == 1);
	const ft_span &s = r.spans[0];
	CHECK(s.start_ns == kStart);
	CHECK(s.duration_ns == 40 * us);
	CHECK((s.on_cpu_ns == 1 && s.runnable_ns == 2 && s.blocked_ns == 3));
	CHECK((s.arg[0] == 4 && s.arg[1] == 5));
	CHECK((s.tid == 100 && s.cpu == 6 && s.depth == 7 && s.owner == FT_FILE_READ));
	CHECK((s.syscall == 202 && s.flags == FT_SPAN_UNFINISHED && s.off_cpu == 1));
	CHECK((s.detail == 0 && s.queue_cpu == 0));
}

TEST_CASE("the owner of a lock is written only if it is a thread of the same process")
{
	Drained drained;
	const uint64_t waker = 7777;
	for (uint32_t tid : {100u, 101u, 200u}) {
		ft_event_thread t = {};
		t.type = FT_EVENT_THREAD_BEGIN;
		t.tid = tid;
		t.tgid = tid / 100 * 100;
		t.t_ns = t.begin_ns = kStart;
		drained.put(t);
	}
	for (uint32_t word : {101u, 200u, 0xcafef00du, 0u}) {
		ft_event_span e = span(kStart + word, 40 * us);
		e.arg[0] = 0x7f0000001000;
		e.arg[1] = word | waker << 32;
		drained.put(e);
	}
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == 4);
	for (const ft_span &s : r.spans) {
		CHECK(s.arg[0] == 0x7f0000001000);
		CHECK(s.arg[1] == ((s.start_ns == kStart + 101 ? 101 : 0) | waker << 32));
	}
}

TEST_CASE("several waits with the same name and stack write these once")
{
	Drained drained;
	drained.put(detail(kStart, 30 * us, "dump.rdb", {0x10, 0x20}));
	drained.put(detail(kStart + 1 * ms, 30 * us, "dump.rdb", {0x10, 0x20}));
	drained.put(detail(kStart + 2 * ms, 30 * us, "dump.rdb", {0x10}));
	drained.put(detail(kStart + 3 * ms, 30 * us, "appendonly.aof", {0x10, 0x20}));
	drained.put(detail(kStart + 4 * ms, 30 * us, "", {}));
	ft_event_span_detail failed = detail(kStart + 5 * ms, 30 * us, "", {});
	failed.stack_bytes = -14; // the kernel's value for failure
	drained.put(failed);
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == 6);
	CHECK(r.details.size() == 3);
	CHECK(r.spans[0].detail != 0);
	CHECK(r.spans[0].detail == r.spans[1].detail);
	CHECK(r.spans[2].detail != r.spans[0].detail);
	CHECK(r.spans[4].detail == 0);
	CHECK(r.spans[5].detail == 0);
	CHECK(r.detail(r.spans[0]).find(R"("name":"dump.rdb","stack":["?","?"])") != std::string::npos);
	CHECK(r.detail(r.spans[3]).find("appendonly.aof") != std::string::npos);
	for (const ft_span &s : r.spans)
		CHECK(s.queue_cpu == 0); // none of them waited for a CPU
}

TEST_CASE("details are stored up to a limit, with a message, and do not lead to small blocks of spans")
{
	constexpr uint32_t limit = 20000;
	Drained drained;
	for (uint32_t i = 0; i < limit + 100; i++)
		drained.put(detail(kStart + i * ms, 40 * us, "file" + std::to_string(i), {0x10}));
	drained.put(detail(kStart + 30'000 * ms, 40 * us, "file7", {0x10})); // one of the known details
	const uint64_t bytes = ft_writer_bytes(drained.written.writer());
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == limit + 101);
	CHECK(r.details.size() == limit);
	CHECK(r.spans[limit - 1].detail == limit);
	CHECK(r.spans[limit].detail == 0);
	CHECK(r.spans[limit + 99].detail == 0);
	CHECK(r.spans[limit + 100].detail == r.spans[7].detail);
	REQUIRE(r.notes.size() == 1);
	CHECK(r.notes[0].find(R"("kind":"missing")") != std::string::npos);
	CHECK(r.notes[0].find("20,000") != std::string::npos);
	// A detail is about 100 bytes with its block's header. A block with one span would be as much again.
	CHECK(bytes < limit * 130);
	CHECK(r.error.empty());
}

TEST_CASE("CPU slices are written unchanged, whatever task ran")
{
	Drained drained;
	// "old" ended before the wait, "was" overlaps its beginning, and the rest is in it.
	drained.put(wait_for_cpu(1000, 1500,
				 {{7, 100, "old"},
				  {8, 900, "was"},
				  {17, 1050, "ksoftirqd/3"},
				  {9, 1400, "sh"},
				  {0, 1480, "swapper/3"},
				  {100, 1500, "redis-server"}}));
	const Recorded r = drained.written.finish();
	REQUIRE(r.slices.size() == 4); // the newest first
	check_slice(r.slices[0], 0, 1480, 1500, "swapper/3");
	check_slice(r.slices[1], 9, 1400, 1480, "sh");
	check_slice(r.slices[2], 17, 1050, 1400, "ksoftirqd/3");
	check_slice(r.slices[3], 8, 900, 1050, "was");
	REQUIRE(r.spans.size() == 1);
	CHECK(r.spans[0].queue_cpu == 4);
	CHECK(r.spans[0].flags == 0); // the recorder computes no holder
	CHECK(r.spans[0].arg[1] == 0);
	CHECK(r.spans[0].detail == 0);
	CHECK(r.held_ns(r.spans[0], 17) == 350 * us);
	CHECK(r.held_ns(r.spans[0], 8) == 50 * us);
	CHECK(r.held_ns(r.spans[0], 100) == 0);
}

TEST_CASE("a CPU slice seen by several waits is written once, and again when it has grown")
{
	Drained drained;
	const std::vector<HeldSlice> first = {{8, 900, "a"}, {9, 1100, "b"}, {100, 1200, "redis"}};
	drained.put(wait_for_cpu(1000, 1200, first, 5));
	drained.put(wait_for_cpu(1050, 1200, first, 5)); // another thread's wait
	// A wait that was moved to another CPU while "b" continued...
	drained.put(wait_for_cpu(1210, 1300, {{9, 1205, "b"}, {0, 0, ""}}, 7));
	// ... and a wait that includes its end.
	drained.put(wait_for_cpu(1250, 1400, {{9, 1205, "b"}, {8, 1350, "a"}, {100, 1400, "redis"}}, 8));
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == 4);
	REQUIRE(r.slices.size() == 5);
	check_slice(r.slices[0], 9, 1100, 1200, "b");
	check_slice(r.slices[1], 8, 900, 1100, "a");
	check_slice(r.slices[2], 9, 1205, 1300, "b");
	check_slice(r.slices[3], 8, 1350, 1400, "a");
	check_slice(r.slices[4], 9, 1205, 1350, "b");
	CHECK(r.held_ns(r.spans[3], 9) == 100 * us);
}

TEST_CASE("slices before those of a span with a wait end where the next ones begin")
{
	Drained drained;
	ft_event_slices e = {};
	e.type = FT_EVENT_SLICES;
	e.cpu = 3;
	e.until_ns = kStart + 1000 * us;
	for (uint32_t i = 0; i < FT_CPU_SLICES; i++) {
		e.slices[i].tid = i;
		e.slices[i].start_ns = kStart + (900 + 10 * i) * us; // the last six were in the span
		strncpy(e.slices[i].comm, "sh", sizeof e.slices[i].comm);
	}
	e.slices[0].start_ns = 0; // none yet
	drained.put(e);
	drained.put(e); // another thread's wait
	const Recorded r = drained.written.finish();
	REQUIRE(r.slices.size() == 9);
	for (uint32_t i = 0; i < 9; i++)
		check_slice(r.slices[i], 9 - i, 990 - 10 * i, 1000 - 10 * i, "sh");
}

TEST_CASE("a wait longer than the CPU's last slices has those that are known")
{
	Drained drained;
	std::vector<HeldSlice> slices;
	for (uint32_t i = 0; i < FT_CPU_SLICES; i++)
		slices.push_back({50 + i, 5000 + i * 10, "busy"});
	drained.put(wait_for_cpu(0, 5000 + (FT_CPU_SLICES - 1) * 10, slices, 2)); // the ring wraps around
	const Recorded r = drained.written.finish();
	REQUIRE(r.slices.size() == FT_CPU_SLICES - 1);
	check_slice(r.slices.back(), 50, 5000, 5010, "busy");
}

TEST_CASE("a tally has a record for each owner that occurred")
{
	Drained drained;
	ft_event_tally e = {};
	e.type = FT_EVENT_TALLY;
	e.tid = 100;
	e.start_ns = kStart;
	e.end_ns = kStart + 1 * ms;
	e.entry[FT_OWN_CODE].total_ns = 900 * us;
	e.entry[FT_HARDIRQ] = {100 * us, 60'000, 2};
	drained.put(e);
	CHECK(drained.d.tallies == 1);
	const Recorded r = drained.written.finish();
	REQUIRE(r.tallies.size() == 2);
	CHECK(r.tallies[0].owner == FT_OWN_CODE);
	CHECK(r.tallies[0].total_ns == 900 * us);
	CHECK(r.tallies[1].owner == FT_HARDIRQ);
	CHECK(r.tallies[1].count == 2);
	CHECK(r.tallies[1].max_ns == 60'000);
	CHECK(r.tallies[1].end_ns == kStart + 1 * ms);
}

TEST_CASE("a disk request has the recording's numbers for its kind")
{
	Drained drained;
	ft_event_io e = {};
	e.type = FT_EVENT_IO;
	e.sector = 8;
	e.bytes = 4096;
	e.error = 1;
	strcpy(e.comm, "kworker/u4:1");
	for (uint8_t op : {0, 1, 2, 3, 9}) {
		e.op = op;
		drained.put(e);
	}
	const Recorded r = drained.written.finish();
	REQUIRE(r.io.size() == 5);
	const uint8_t wanted[] = {0, 1, 3, 2, 4}; // read, write, flush, discard, other
	for (size_t i = 0; i < 5; i++)
		CHECK(r.io[i].write == wanted[i]);
	CHECK((r.io[0].sector == 8 && r.io[0].bytes == 4096 && r.io[0].error == 1));
	CHECK(r.io[0].comm.raw == std::string("kworker/u4:1"));
}

TEST_CASE("a thread ends when its end was missed, and a living one does not")
{
	Drained drained;
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	REQUIRE(child > 0);
	ft_event_thread t = {};
	t.type = FT_EVENT_THREAD_BEGIN;
	t.t_ns = t.begin_ns = kStart;
	for (const pid_t pid : {child, getpid()}) {
		t.tid = t.tgid = static_cast<uint32_t>(pid);
		drained.put(t);
	}
	int status;
	REQUIRE(waitpid(child, &status, 0) == child);
	const uint64_t before_ns = ft_now_ns();
	drain_sweep(&drained.d);
	const uint64_t after_ns = ft_now_ns();
	CHECK(threads_alive(&drained.all, child)); // its end may still arrive
	drain_sweep(&drained.d);
	CHECK_FALSE(threads_alive(&drained.all, child));
	CHECK(threads_alive(&drained.all, getpid()));
	CHECK(drained.all.count == 1);
	// It had ended when it was first not found.
	const Recorded r = drained.written.finish();
	const ft_thread &ended = r.threads.at({static_cast<uint32_t>(child), kStart});
	CHECK(ended.end_ns >= before_ns);
	CHECK(ended.end_ns <= after_ns);
	CHECK(ended.flags & FT_THREAD_ENDED);
	REQUIRE(r.notes.size() == 1);
	CHECK(r.notes[0].find("\"target-ended\",\"pid\":" + std::to_string(child)) != std::string::npos);
	CHECK(r.threads.at({static_cast<uint32_t>(getpid()), kStart}).end_ns == 0);
}

TEST_CASE("a thread has ended when another one begins with its id")
{
	Drained drained;
	ft_event_thread t = {};
	t.type = FT_EVENT_THREAD_BEGIN;
	t.tid = t.tgid = 1u << 30; // no id of this host
	for (uint64_t begin_ns : {kStart, kStart + 5 * ms}) {
		t.t_ns = t.begin_ns = begin_ns;
		drained.put(t);
	}
	CHECK(drained.all.count == 1);
	const Recorded r = drained.written.finish();
	REQUIRE(r.threads.size() == 2);
	CHECK(r.threads.at({t.tid, kStart}).end_ns == kStart + 5 * ms);
	CHECK(r.threads.at({t.tid, kStart + 5 * ms}).end_ns == 0);
}

TEST_CASE("a tick reads the names of a limited number of threads, and further ticks those of all")
{
	constexpr size_t count = 100, most = 20;
	Drained drained;
	std::atomic<bool> over = false;
	std::vector<std::thread> threads(count);
	for (std::thread &thread : threads) {
		std::promise<pid_t> tid;
		thread = std::thread([&] {
			tid.set_value(gettid());
			over.wait(false);
		});
		ft_event_thread t = {};
		t.type = FT_EVENT_THREAD_BEGIN;
		t.tid = static_cast<uint32_t>(tid.get_future().get());
		t.tgid = static_cast<uint32_t>(getpid());
		t.t_ns = t.begin_ns = kStart;
		drained.put(t);
	}
	for (std::thread &thread : threads)
		pthread_setname_np(thread.native_handle(), "renamed");
	const auto renamed = [&] {
		size_t n = 0;
		for (size_t i = 0; i < drained.all.count; i++)
			n += std::string(drained.all.all[i]->record.comm.raw) == "renamed";
		return n;
	};
	for (size_t tick = 1; tick <= count / most; tick++) {
		threads_tick(&drained.all, drained.written.writer());
		CHECK(renamed() == tick * most);
	}
	over = true;
	over.notify_all();
	for (std::thread &thread : threads)
		thread.join();
}

TEST_CASE("threads begin and end, and a write to files counts for its process")
{
	Drained drained;
	ft_event_thread t = {};
	t.type = FT_EVENT_THREAD_BEGIN;
	t.tid = t.tgid = static_cast<uint32_t>(getpid());
	t.t_ns = t.begin_ns = kStart;
	strcpy(t.comm, "before");
	drained.put(t);
	CHECK(threads_alive(&drained.all, getpid()));
	t.type = FT_EVENT_THREAD_END;
	t.t_ns = kStart + 5 * ms;
	drained.put(t);
	CHECK_FALSE(threads_alive(&drained.all, getpid()));
	ft_event_writes w = {FT_EVENT_WRITES, 77, 1, 2, 3, 4, 0, "dd"};
	drained.put(w);
	const Recorded r = drained.written.finish();
	REQUIRE(r.threads.size() == 1);
	const ft_thread &thread = r.threads.begin()->second;
	CHECK(thread.end_ns == kStart + 5 * ms);
	CHECK(thread.flags == (FT_THREAD_MAIN | FT_THREAD_ENDED));
	CHECK(std::string(thread.comm.raw).substr(0, 11) == "test_loader"); // what /proc says
	REQUIRE(r.writes.size() == 1);
	CHECK((r.writes[0].tgid == 77 && r.writes[0].bytes == 3 && r.writes[0].dev == 4));
}

TEST_CASE("a target has ended with its last thread; a child's end and the recording's end do not count")
{
	Drained drained;
	auto put = [&](uint32_t type, uint32_t tid, uint32_t tgid, uint32_t parent, uint64_t t_ns) {
		ft_event_thread t = {};
		t.type = type;
		t.tid = tid;
		t.tgid = tgid;
		t.parent_tgid = parent;
		t.t_ns = kStart + t_ns;
		t.begin_ns = kStart;
		strcpy(t.comm, tid == tgid ? "server" : "bio");
		drained.put(t);
	};
	constexpr uint32_t server = 1u << 30, other = server + 10, child = server + 20; // no ids of this host
	for (uint32_t tid : {server, server + 1, other})
		put(FT_EVENT_THREAD_BEGIN, tid, tid == other ? other : server, 0, 0);
	put(FT_EVENT_THREAD_BEGIN, child, child, server, 0);
	CHECK(drained.all.begun == 4);
	put(FT_EVENT_THREAD_END, child, child, 0, 1 * ms);
	put(FT_EVENT_THREAD_END, server, server, 0, 2 * ms);
	REQUIRE(drained.all.ended_count == 1);
	CHECK(drained.all.ended[0].t_ns == 0); // its other thread continues
	put(FT_EVENT_THREAD_END, server + 1, server, 0, 3 * ms);
	drained.all.closing = true;
	put(FT_EVENT_THREAD_END, other, other, 0, 4 * ms);
	REQUIRE(drained.all.ended_count == 1);
	CHECK(drained.all.ended[0].pid == static_cast<pid_t>(server));
	CHECK(drained.all.ended[0].t_ns == kStart + 3 * ms);
	CHECK(std::string(drained.all.ended[0].comm) == "server");
	const Recorded r = drained.written.finish();
	REQUIRE(r.notes.size() == 1);
	CHECK(r.notes[0].find("\"target-ended\",\"pid\":1073741824,\"comm\":\"server\"") !=
	      std::string::npos);
	CHECK((r.threads.at({other, kStart}).flags & FT_THREAD_ENDED) == 0);
	CHECK((r.threads.at({server, kStart}).flags & FT_THREAD_ENDED) != 0);
}

TEST_CASE("how a target ended is noted, and how a child of it was killed")
{
	struct Case {
		uint32_t code, flags;
		const char *text, *members;
	};
	const auto [code, flags, text, members] = GENERATE(
	    Case{0, FT_EXIT_CODE, "exit status 0", "\"status\":0}"},
	    Case{3 << 8, FT_EXIT_CODE, "exit status 3", "\"status\":3}"},
	    Case{9, FT_EXIT_CODE, "killed by SIGKILL", "\"signal\":9}"},
	    Case{9, FT_EXIT_CODE | FT_EXIT_OOM_KILLER, "killed by SIGKILL (OOM killer)",
		 "\"signal\":9,\"oom_killer\":true}"},
	    Case{0x80 | 11, FT_EXIT_CODE, "killed by SIGSEGV", "\"signal\":11,\"core_dumped\":true}"},
	    Case{0, 0, "", "\"comm\":\"server\"}"}); // its exit event was lost
	Drained drained;
	ft_event_thread t = {};
	t.begin_ns = t.t_ns = kStart;
	strcpy(t.comm, "server");
	constexpr uint32_t server = 1u << 30, child = server + 1; // no ids of this host
	for (uint32_t type : {FT_EVENT_THREAD_BEGIN, FT_EVENT_THREAD_END})
		for (uint32_t tid : {server, child}) {
			t.type = type;
			t.tid = t.tgid = tid;
			t.parent_tgid = tid == child ? server : 0;
			t.exit_code = code;
			t.exit_flags = flags;
			drained.put(t);
		}
	REQUIRE(drained.all.ended_count == 1);
	char how[64];
	exit_text(drained.all.ended[0].exit_code, drained.all.ended[0].exit_flags, how, sizeof how);
	CHECK(std::string(how) == text);
	const Recorded r = drained.written.finish();
	const bool killed = code & 0x7f;
	REQUIRE(r.notes.size() == (killed ? 2 : 1));
	CHECK(r.notes[0].find("\"target-ended\"") != std::string::npos);
	CHECK(r.notes[0].ends_with(members));
	if (killed) {
		CHECK(r.notes[1].find("\"child-killed\"") != std::string::npos);
		CHECK(r.notes[1].ends_with(members));
	}
}

TEST_CASE("a thread's tracer and its frozen cgroup are noted once")
{
	Drained drained;
	Proc root;
	const std::string path = root.path();
	drained.d.suspensions.root = path.c_str();
	root.write("proc/100/cgroup", "6:freezer:/lxc/web\n0::/v2\n");
	ft_event_span_detail traced = detail(kStart, 40 * us, "strace", {});
	traced.span.owner = FT_PTRACED;
	traced.span.arg[0] = 77;
	drained.put(traced);
	for (uint64_t version : {FT_FREEZER_V1, FT_FREEZER_V1, FT_FREEZER_V2}) {
		ft_event_span e = span(kStart, 40 * us);
		e.owner = FT_FROZEN;
		e.arg[0] = version;
		drained.put(e);
	}
	ft_event_span gone = span(kStart, 40 * us);
	gone.owner = FT_FROZEN;
	gone.tid = 101;
	drained.put(gone);
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == 5);
	CHECK(r.spans[0].detail == 0); // a tracer's name is no file name
	REQUIRE(r.notes.size() == 3);
	CHECK(r.notes[0].find("\"tracer\",\"pid\":77,\"comm\":\"strace\"") != std::string::npos);
	CHECK(r.notes[1].find("\"pid\":100,\"cgroup\":\"/lxc/web\",\"cgroup_of\":\"container web\"") !=
	      std::string::npos);
	CHECK(r.notes[2].find("\"cgroup\":\"/v2\",\"cgroup_of\":\"\"") != std::string::npos);
}

TEST_CASE("an event of another size or of an unknown type does no harm")
{
	Drained drained;
	ft_event_span_detail e = wait_for_cpu(0, 100, {{8, 0, "a"}, {100, 100, "redis"}});
	drained.put(e, sizeof(ft_event_span));		       // its detail is missing
	drained.put(e, sizeof(ft_event_span_detail) - 1);      // or incomplete
	ft_event_span longer[2] = {span(kStart, 40 * us), {}}; // a newer one, with more at its end
	drained.put(longer);
	uint32_t unknown = 4711;
	drained.put(unknown);
	const Recorded r = drained.written.finish();
	REQUIRE(r.spans.size() == 3);
	CHECK(r.slices.empty());
	CHECK(r.details.empty());
	for (const ft_span &s : r.spans) {
		CHECK(s.detail == 0);
		CHECK(s.queue_cpu == 0);
	}
	CHECK(r.spans[2].duration_ns == 40 * us);
}

TEST_CASE("unwanted samples are skipped")
{
	Drained drained; // without samples
	ft_event_sample e = {};
	e.type = FT_EVENT_SAMPLE;
	drained.put(e);
	CHECK(drained.written.finish().error.empty());
}
