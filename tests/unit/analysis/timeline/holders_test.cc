// SPDX-License-Identifier: MIT
// The CPU holder during a wait, computed from the recorded CPU slices. The explanation is the same for a
// recording whose recorder had computed it.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/support/tempdir.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/explain.h"
#include "analysis/text.h"
#include "analysis/timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint16_t kCpu = 1;

ft_cpu_slice Slice(const char *comm, uint32_t tid, uint64_t start, uint64_t end, uint16_t cpu = kCpu)
{
	ft_cpu_slice t = {kBase + start, kBase + end, tid, cpu, 0, {}};
	memcpy(t.comm.raw, comm, strnlen(comm, sizeof t.comm.raw));
	return t;
}

// A wait for kCpu from 1 ms to 2 ms.
RunBuilder Waiting(const std::vector<ft_cpu_slice> &slices)
{
	RunBuilder b;
	b.Thread(kServer, 0, 10 * ms);
	b.Off(FT_IDLE, 0, 1 * ms, 2 * ms).queue_cpu = kCpu + 1;
	b.run.cpu_slices = slices;
	return b;
}

WaitHolder Holder(const RunBuilder &b, size_t span = 0)
{
	return HolderOf(b.run, b.run.spans[span]);
}

} // namespace

TEST_CASE("a CPU held by ksoftirqd counts as deferred soft interrupts")
{
	RunBuilder b =
	    Waiting({Slice("ksoftirqd/1", 17, 800 * us, 1900 * us), Slice("sh", 50, 1900 * us, 2 * ms)});
	b.Finish();
	CHECK(Holder(b).tid == 17);
	CHECK(Holder(b).ns == 900 * us);
	CHECK(Holder(b).name == "ksoftirqd/1");
	Account a = AccountOf(b.run, 0);
	CHECK(a.by_cause[Index(Cause::SoftirqDeferred)] == 1 * ms);
	CHECK(a.by_cause[Index(Cause::RunQueue)] == 0);
}

TEST_CASE("ksoftirqd as the longest holder, but for less than half of the wait, is an ordinary holder")
{
	RunBuilder b =
	    Waiting({Slice("a", 50, 1000 * us, 1250 * us), Slice("ksoftirqd/1", 17, 1250 * us, 1750 * us),
		     Slice("b", 51, 1750 * us, 2 * ms)});
	b.Finish();
	CHECK(Holder(b).tid == 17);
	Account a = AccountOf(b.run, 0);
	CHECK(a.by_cause[Index(Cause::SoftirqDeferred)] == 0);
	CHECK(a.by_cause[Index(Cause::RunQueue)] == 1 * ms);

	RunBuilder other = Waiting({Slice("ksoftirqd-like", 17, 0, 2 * ms)}); // not the kernel's
	other.Finish();
	CHECK_FALSE(Holder(other).deferred);
}

TEST_CASE("CPU slices of one task add up, each once, and those of other CPUs or times do not count")
{
	RunBuilder b = Waiting({
	    Slice("b", 51, 1500 * us, 2 * ms),
	    Slice("a", 50, 1000 * us, 1300 * us),
	    Slice("a", 50, 1000 * us, 1100 * us), // as another wait reported it before it was over
	    Slice("a", 50, 1000 * us, 1300 * us), // and once more
	    Slice("c", 52, 1300 * us, 1350 * us),
	    Slice("a", 50, 1350 * us, 1500 * us),
	    Slice("a", 50, 0, 1000 * us),
	    Slice("a", 50, 2 * ms, 9 * ms),
	    Slice("a", 50, 1000 * us, 2 * ms, kCpu + 1),
	});
	b.Finish();
	CHECK(b.run.cpu_slices.size() == 7);
	CHECK(Holder(b).tid == 51);
	CHECK(Holder(b).ns == 500 * us); // "a" has 450
	CHECK(Holder(b).name == "b");
}

TEST_CASE("a holder's name is added to other facts about a wait and does not replace them")
{
	RunBuilder b = Waiting({Slice("sh", 50, 0, 9 * ms)});
	b.run.details.push_back({"dump.rdb", {"io_schedule+0x42"}});
	b.run.details.push_back({"", {"futex_wait+0x1"}});
	b.Off(FT_FILE_READ, 3 * ms, 4 * ms, 5 * ms).queue_cpu = kCpu + 1;
	b.run.spans.back().detail = 1;
	b.Off(FT_LOCK_WAIT, 6 * ms, 7 * ms, 8 * ms).queue_cpu = kCpu + 1;
	b.run.spans.back().detail = 2;
	b.Off(FT_IDLE, 8 * ms, 8 * ms, 9 * ms).queue_cpu = kCpu + 1;
	b.Finish();
	const Column<ft_span> &spans = b.run.spans;
	REQUIRE(spans.size() == 4);
	for (size_t i = 0; i < spans.size(); i++) {
		CHECK(Holder(b, i).tid == 50);
		CHECK(Holder(b, i).ns == 1 * ms);
		CHECK(spans[i].arg[1] == 0); // as it was recorded
	}
	CHECK(NameOf(b.run, spans[1]) == "dump.rdb");
	CHECK(NameOf(b.run, spans[2]) == "sh");
	CHECK(DetailOf(b.run, spans[2]).stack == std::vector<std::string>{"futex_wait+0x1"});
	CHECK(NameOf(b.run, spans[0]) == "sh");
	CHECK(NameOf(b.run, spans[3]) == "sh");
}

TEST_CASE("a wait without recorded facts stays so, and one of an old recording keeps its holder")
{
	RunBuilder b = Waiting({Slice("sh", 50, 5 * ms, 6 * ms)});
	ft_span &old = b.Off(FT_RUN_QUEUE, 5 * ms, 5 * ms, 6 * ms);
	old.arg[1] = 4711 | (900 * us) << 32;
	old.flags = FT_SPAN_KSOFTIRQD;
	b.Finish();
	CHECK(Holder(b).tid == 0);
	CHECK(Holder(b).ns == 0);
	CHECK(NameOf(b.run, b.run.spans[0]).empty());
	CHECK(Holder(b, 1).tid == 4711);
	CHECK(Holder(b, 1).ns == 900 * us);
	CHECK(Holder(b, 1).deferred);
}

TEST_CASE("CPU slices with impossible times are ignored")
{
	RunBuilder b = Waiting({Slice("x", 50, 2 * ms, 1 * ms), Slice("sh", 51, 1900 * us, 2 * ms)});
	b.Finish();
	CHECK(Holder(b).tid == 51);
	CHECK(b.run.warnings.size() == 1);
}

namespace
{

template <typename T> void Write(ft_writer *w, ft_block_kind kind, const T &record)
{
	REQUIRE(ft_writer_record(w, kind, &record) == 0);
}

// 90 ms, in which the server waits for its CPU every tenth ms: for ksoftirqd, for sh, for both.
std::string ExplainedWaits(const std::string &path, bool with_turns)
{
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, path.c_str(),
			       R"({"program":"forktail-record","boot_id":"b1","min_span_ns":20000,"cpus":2,
			       "start_ns":1000000000000,"targets":[{"pid":100,"comm":"redis-server"}]})") ==
		0);
	ft_thread t = {kBase,	       kBase + 90 * ms, kServer, kServer, 0, FT_THREAD_MAIN | FT_THREAD_ENDED,
		       "redis-server", "redis-server"};
	Write(w, FT_BLOCK_THREAD, t);
	if (!with_turns) {
		REQUIRE(ft_writer_json(w, FT_BLOCK_DETAIL, R"({"id":1,"name":"ksoftirqd/1","stack":[]})") ==
			0);
		REQUIRE(ft_writer_json(w, FT_BLOCK_DETAIL, R"({"id":2,"name":"sh","stack":[]})") == 0);
	}
	for (uint64_t i = 0; i < 9; i++) {
		uint64_t from = i * 10 * ms + 4 * ms, until = from + 4 * ms;
		uint64_t softirqs = i % 3 == 0 ? 4 * ms : i % 3 == 1 ? 300 * us : 3 * ms;
		RunBuilder b;
		ft_span s = b.Off(FT_IDLE, from - 2 * ms, from, until);
		if (with_turns) {
			s.queue_cpu = kCpu + 1;
			Write(w, FT_BLOCK_CPU_SLICE,
			      Slice("ksoftirqd/1", 17, from - 1 * ms, from + softirqs));
			if (softirqs < 4 * ms)
				Write(w, FT_BLOCK_CPU_SLICE, Slice("sh", 50, from + softirqs, until));
		} else if (softirqs > 2 * ms) {
			s.detail = 1;
			s.arg[1] = 17 | softirqs << 32;
			s.flags = FT_SPAN_KSOFTIRQD;
		} else {
			s.detail = 2;
			s.arg[1] = 50 | (4 * ms - softirqs) << 32;
		}
		Write(w, FT_BLOCK_SPAN, s);
	}
	ft_tally own = {kBase, kBase + 90 * ms, 36 * ms, 0, 0, kServer, FT_OWN_CODE, 0};
	Write(w, FT_BLOCK_TALLY, own);
	REQUIRE(ft_writer_close(w, R"({"end_ns":1000090000000,"reason":"duration"})") == 0);

	Explained e;
	std::string error;
	int status = 0;
	REQUIRE(ExplainRun(path, {}, &e, &error, &status));
	CHECK(e.run.warnings.empty());
	CHECK(e.accounts[0].by_cause[Index(Cause::SoftirqDeferred)] == 6 * 4 * ms);
	CHECK(e.accounts[0].by_cause[Index(Cause::RunQueue)] == 3 * 4 * ms);
	return ExplainText(e, {}) + ExplainJson(e);
}

} // namespace

TEST_CASE("holders computed by the recorder and holders computed here give the same sentences")
{
	TempDir dir;
	std::string path = dir.file("server.forktail");
	std::string decided = ExplainedWaits(path, false), left_open = ExplainedWaits(path, true);
	CHECK(decided.find("the CPU was held by sh (50) for 3.70 ms") != std::string::npos);
	CHECK(decided.find("softirq/deferred") != std::string::npos);
	CHECK(decided == left_open);
}
