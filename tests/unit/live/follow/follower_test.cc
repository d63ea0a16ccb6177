// SPDX-License-Identifier: MIT
// What a follower makes of recordings that the test writes while it follows: accounts, names, iterations,
// rings.
#include <filesystem>

#include "live/follow.h"
#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::analysis;
using namespace forktail::live;
using namespace forktail::live;
using forktail::test::TempDir;

namespace
{

constexpr uint64_t kStart = 1000 * kSecondNs;
constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kTid = 500;

// Written as a recorder does, by the time since kStart.
class Writer
{
public:
	explicit Writer(const std::string &path, uint64_t start_ns = kStart, uint64_t ring_start_ns = kStart,
			uint32_t pid = kTid)
	{
		const std::string manifest =
		    R"({"program":"forktail-record","clock_id":"c","min_span_ns":20000,"start_ns":)" +
		    std::to_string(start_ns) + R"(,"ring_start_ns":)" + std::to_string(ring_start_ns) +
		    R"(,"targets":[{"pid":)" + std::to_string(pid) +
		    R"(,"comm":"redis-server","listens":["tcp:16379","tcp:6379"]}]})";
		REQUIRE(ft_writer_open(&w_, path.c_str(), manifest.c_str()) == 0);
		Thread(pid, pid, 0, start_ns, 0, FT_THREAD_MAIN, "redis-server");
	}
	~Writer() { Kill(); }
	void Thread(uint32_t tid, uint32_t tgid, uint32_t parent, uint64_t start, uint64_t end,
		    uint32_t flags, const char *role)
	{
		ft_thread t = {};
		t.tid = tid;
		t.tgid = tgid;
		t.parent_tgid = parent;
		t.start_ns = start;
		t.end_ns = end;
		t.flags = flags;
		snprintf(t.role.raw, sizeof t.role.raw, "%s", role);
		snprintf(t.comm.raw, sizeof t.comm.raw, "redis-server");
		Record(FT_BLOCK_THREAD, t);
	}
	ft_span Frame(uint8_t owner, uint64_t start, uint64_t ns, uint64_t own)
	{
		ft_span s = {};
		s.tid = kTid;
		s.start_ns = kStart + start;
		s.duration_ns = ns;
		s.on_cpu_ns = own;
		s.owner = owner;
		s.syscall = -1;
		return s;
	}
	ft_span Wait(uint8_t owner, uint64_t start, uint64_t blocked, uint64_t runnable)
	{
		ft_span s = Frame(owner, start, blocked + runnable, 0);
		s.off_cpu = 1;
		s.blocked_ns = blocked;
		s.runnable_ns = runnable;
		return s;
	}
	void Tally(uint8_t owner, uint64_t start, uint64_t end, uint64_t total, uint32_t count)
	{
		ft_tally t = {};
		t.tid = kTid;
		t.start_ns = kStart + start;
		t.end_ns = kStart + end;
		t.total_ns = total;
		t.count = count;
		t.owner = owner;
		Record(FT_BLOCK_TALLY, t);
	}
	template <typename T> void Record(ft_block_kind kind, const T &record)
	{
		REQUIRE(ft_writer_record(w_, kind, &record) == 0);
	}
	void Json(ft_block_kind kind, const std::string &text)
	{
		REQUIRE(ft_writer_json(w_, kind, text.c_str()) == 0);
	}
	void Flush() { ft_writer_flush(w_); }
	void Seal()
	{
		ft_writer_close(w_, R"({"reason":"segment"})");
		w_ = nullptr;
	}
	// A killed recorder leaves this. For a follower only the missing trailer matters.
	void Kill()
	{
		if (w_)
			Seal();
	}

private:
	ft_writer *w_ = nullptr;
};

struct Following {
	explicit Following(const std::string &path) : follower(path, {}) {}
	void To(uint64_t since_start)
	{
		std::string error;
		follower.SetNow(kStart + since_start);
		INFO(error);
		REQUIRE(follower.Poll(&batch, &error));
	}
	uint64_t Ns(Cause cause) const { return follower.threads().at(0).by_cause[Index(cause)]; }
	Follower follower;
	Batch batch;
};

} // namespace

TEST_CASE("a thread's second sums to one second, and no counter decreases")
{
	TempDir dir;
	Writer w(dir.file("r"));
	Following f(dir.file("r"));
	w.Record(FT_BLOCK_SPAN, w.Wait(FT_IDLE, 0, 300 * kMs, 10 * kMs));
	w.Tally(FT_OWN_CODE, 310 * kMs, 400 * kMs, 80 * kMs, 5);
	w.Tally(FT_PAGE_ZERO, 310 * kMs, 400 * kMs, 10 * kMs, 100);
	w.Record(FT_BLOCK_SPAN, w.Wait(FT_FILE_WRITE, 450 * kMs, 100 * kMs, 0));
	w.Record(FT_BLOCK_SPAN, w.Frame(FT_FORK, 400 * kMs, 200 * kMs, 100 * kMs));
	// Then it sleeps for longer than a user wants to wait for a report.
	w.Record(FT_BLOCK_OPEN, [&] {
		ft_span open = w.Wait(FT_IDLE, 600 * kMs, 2400 * kMs, 0);
		open.flags = FT_SPAN_UNFINISHED;
		return open;
	}());
	w.Flush();
	f.To(3100 * kMs);
	REQUIRE(f.batch.seconds.size() == 1);
	CHECK(f.batch.seconds[0].start_ns == kStart);
	REQUIRE(f.follower.servers().size() == 1);
	CHECK(f.follower.servers()[0].name == "redis-server:6379");
	REQUIRE(f.follower.threads().size() == 1);
	CHECK(f.follower.threads()[0].name == "redis-server");
	CHECK(f.batch.seconds[0].threads.at(0).counts[Index(Cause::PageZero)] == 100);
	CauseTimes second = f.batch.seconds[0].threads.at(0).by_cause;
	auto ms = [&](Cause cause) { return static_cast<double>(second[Index(cause)]) / kMs; };
	CHECK(ms(Cause::Idle) == Approx(700).margin(0.01));
	CHECK(ms(Cause::RunQueue) == Approx(10).margin(0.01));
	CHECK(ms(Cause::ServerBusy) == Approx(80).margin(0.01));
	CHECK(ms(Cause::PageZero) == Approx(10).margin(0.01));
	CHECK(ms(Cause::FileWrite) == Approx(100).margin(0.01));
	CHECK(ms(Cause::Fork) == Approx(100).margin(0.01));
	CHECK(f.batch.forks.size() == 1);
	uint64_t sum = 0;
	for (uint64_t ns : second)
		sum += ns;
	CHECK(sum == kSecondNs);

	// The wait ends and had another reason than assumed: what was counted stays counted.
	const uint64_t before = f.Ns(Cause::Idle);
	w.Record(FT_BLOCK_SPAN, w.Wait(FT_LOCK_WAIT, 600 * kMs, 4400 * kMs, 0));
	w.Flush();
	f.To(6000 * kMs);
	f.To(7100 * kMs);
	CHECK(f.Ns(Cause::Idle) >= before);
	CHECK(f.Ns(Cause::LockWait) > 0);
	CHECK(f.follower.threads()[0].accounted_ns == f.follower.accounted_to_ns() - kStart);
	sum = 0;
	for (uint64_t ns : f.follower.threads()[0].by_cause)
		sum += ns;
	CHECK(sum == f.follower.threads()[0].accounted_ns);
}

TEST_CASE("very many threads of a server share a label that sums, whatever they are called")
{
	constexpr uint32_t threads = 400;
	TempDir dir;
	Writer w(dir.file("r"));
	Following f(dir.file("r"));
	for (uint32_t i = 1; i <= threads; i++) {
		w.Thread(kTid + i, kTid, 0, kStart, 0, 0, i == 1 ? "other" : "worker");
		ft_span wait = w.Wait(FT_IDLE, 0, 1000 * kMs, 0);
		wait.tid = kTid + i;
		w.Record(FT_BLOCK_SPAN, wait);
	}
	w.Flush();
	f.To(3100 * kMs);
	CHECK(f.follower.threads().size() == 256);
	uint64_t idle = 0, others = 0;
	for (const ThreadTotals &t : f.follower.threads()) {
		idle += t.by_cause[Index(Cause::Idle)];
		others += t.name == "other" ? t.by_cause[Index(Cause::Idle)] : 0;
	}
	CHECK(idle == threads * 1000 * kMs);
	CHECK(others == (threads + 1 - 255) * 1000 * kMs);
}

TEST_CASE("an iteration is reported with its parts and its CPU holders")
{
	TempDir dir;
	Writer w(dir.file("r"));
	Following f(dir.file("r"));
	w.Json(FT_BLOCK_DETAIL,
	       R"({"id":3,"name":"appendonly.aof","stack":["io_schedule+0x1","submit_bio_wait+0x2"]})");
	w.Record(FT_BLOCK_SPAN, w.Wait(FT_IDLE, 0, 90 * kMs, 0));
	w.Record(FT_BLOCK_SPAN, [&] { // gives the thread its loop
		ft_span iteration = w.Frame(FT_ITERATION, 90 * kMs, 1 * kMs, 0);
		iteration.arg[1] = 1 | 1 << 16;
		return iteration;
	}());
	w.Flush();
	f.To(200 * kMs);
	w.Tally(FT_COW_COPY, 100 * kMs, 130 * kMs, 4 * kMs, 40);
	w.Record(FT_BLOCK_SPAN, [&] {
		ft_span wait = w.Wait(FT_FILE_WRITE, 105 * kMs, 12 * kMs, 3 * kMs);
		wait.detail = 3;
		wait.queue_cpu = 1 + 2;
		return wait;
	}());
	ft_cpu_slice taken = {kStart + 117 * kMs, kStart + 120 * kMs, 77, 2, 0, "stress-ng"};
	w.Record(FT_BLOCK_CPU_SLICE, taken);
	w.Record(FT_BLOCK_SPAN, w.Frame(FT_ITERATION, 100 * kMs, 30 * kMs, 0));
	w.Flush();
	f.To(700 * kMs);
	f.To(1200 * kMs);
	REQUIRE(f.batch.iterations.size() == 1);
	const Iteration &iteration = f.batch.iterations[0];
	CHECK(iteration.duration_ns == 30 * kMs);
	REQUIRE(iteration.parts.size() == 4);
	CHECK(iteration.parts[0].cause == Cause::FileWrite);
	CHECK(iteration.parts[0].ns == 12 * kMs);
	CHECK(iteration.parts[1].cause == Cause::ServerBusy);
	CHECK(iteration.parts[1].ns == 11 * kMs);
	CHECK(iteration.parts[2].cause == Cause::CowCopy);
	CHECK(iteration.parts[3].cause == Cause::RunQueue);
	CHECK(iteration.detail == "appendonly.aof");
	CHECK(iteration.stack == "submit_bio_wait");
	CHECK(iteration.holder == "stress-ng");
	REQUIRE(f.batch.taken.size() == 1);
	CHECK(f.batch.taken[0].comm == "stress-ng");
	CHECK(f.batch.taken[0].ns == 3 * kMs);
}

TEST_CASE("a ring is followed from segment to segment, over eviction and another recorder")
{
	TempDir dir;
	auto segment = [&](unsigned number) {
		char name[64];
		snprintf(name, sizeof name, "segment-%010u.forktail", number);
		return dir.file(name);
	};
	Following f(dir.path());
	f.To(0); // an empty ring is no error
	auto first = std::make_unique<Writer>(segment(1));
	first->Record(FT_BLOCK_SPAN, first->Wait(FT_IDLE, 0, 1000 * kMs, 0));
	first->Flush();
	f.To(1100 * kMs);
	CHECK(f.follower.newest_ns() == kStart + 1000 * kMs);
	first->Record(FT_BLOCK_SPAN, first->Wait(FT_IDLE, 1000 * kMs, 500 * kMs, 0));
	first->Seal();
	Writer second(segment(2), kStart + 1500 * kMs);
	second.Record(FT_BLOCK_SPAN, second.Wait(FT_IDLE, 1500 * kMs, 500 * kMs, 0));
	second.Flush();
	std::filesystem::remove(segment(1));
	f.To(2100 * kMs);
	CHECK(f.follower.newest_ns() == kStart + 2000 * kMs);
	CHECK(f.follower.buffer().segments == 1);

	// It is killed. Another one begins, and the server was restarted in between.
	Writer third(segment(3), kStart + 5000 * kMs, kStart + 5000 * kMs, kTid + 1);
	third.Flush();
	ft_span wait = third.Wait(FT_IDLE, 5000 * kMs, 3000 * kMs, 0);
	wait.tid = kTid + 1;
	third.Record(FT_BLOCK_SPAN, wait);
	third.Flush();
	f.To(8100 * kMs);
	bool began = false;
	for (const Note &note : f.batch.notes)
		began |= note.kind == "recorder-began";
	CHECK(began);
	CHECK(f.follower.servers().size() == 1);
	CHECK(f.follower.servers()[0].pid == kTid + 1);
	CHECK(f.follower.servers()[0].alive);
	REQUIRE(f.follower.threads().size() == 1);
	CHECK(f.follower.threads()[0].tid == kTid + 1);
	CHECK(f.Ns(Cause::Idle) == (2000 + 1100) * kMs);
}

TEST_CASE("histograms' buckets are four times the one before")
{
	Durations d;
	d.Add(1000);
	d.Add(1001);
	d.Add(5 * kSecondNs);
	CHECK(Durations::BoundNs(11) == 4'194'304'000);
	CHECK(d.counts[0] == 1);
	CHECK(d.counts[1] == 1);
	CHECK(d.counts[Durations::kBuckets] == 1);
	CHECK(d.count == 3);
}
