// SPDX-License-Identifier: MIT
// Which task held a CPU while another one waited for it.
#include "live/follow/cpu_holders.h"

#include <cstring>
#include <random>

#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;
using forktail::live::Held;

namespace
{

ft_cpu_slice turn(uint16_t cpu, const char *comm, uint64_t start_ns, uint64_t end_ns)
{
	ft_cpu_slice t = {};
	t.start_ns = start_ns;
	t.end_ns = end_ns;
	t.cpu = cpu;
	t.tid = static_cast<uint32_t>(comm[0]); // each name belongs to one task
	strncpy(t.comm, comm, sizeof t.comm - 1);
	return t;
}

std::string said(const std::vector<CpuHolder> &holders)
{
	std::string text;
	for (const CpuHolder &h : holders)
		text += h.turn->comm + (" " + std::to_string(h.ns)) + ";";
	return text;
}

} // namespace

TEST_CASE("CPU holders are listed longest first, whatever the order of their CPU slices")
{
	forktail::live::Held held;
	held.Add(turn(0, "last", 500, 600));
	held.Add(turn(0, "hog", 100, 400));
	held.Add(turn(0, "next", 400, 480));
	held.Add(turn(1, "elsewhere", 100, 600));
	held.Add(turn(0, "hog", 600, 900));
	CHECK(said(held.In(0, 300, 550)) == "hog 100;next 80;last 50;");
	CHECK(said(held.In(0, 0, 1000)) == "hog 600;last 100;next 80;");
	CHECK(said(held.In(0, 200, 210)) == "hog 10;");
	CHECK(held.In(0, 900, 1000).empty());
	CHECK(held.In(2, 0, 1000).empty());
}

TEST_CASE("a CPU slice that continues is reported again and counts once")
{
	forktail::live::Held held;
	held.Add(turn(0, "hog", 100, 200));
	held.Add(turn(0, "hog", 100, 700));
	held.Add(turn(0, "hog", 100, 300));
	CHECK(said(held.In(0, 0, 1000)) == "hog 600;");
}

TEST_CASE("an idle CPU has no holder")
{
	Held held;
	ft_cpu_slice idle = turn(0, "swapper/0", 100, 200);
	idle.tid = 0;
	held.Add(idle);
	const auto holders = held.In(0, 0, 1000);
	CHECK((holders.size() == 1 && holders[0].tid == 0));
}

TEST_CASE("old CPU slices are dropped, and slices without an end are not stored")
{
	forktail::live::Held held;
	for (uint64_t i = 0; i < 100000; i++)
		held.Add(turn(0, "busy", 10 * i, 10 * i + 10));
	CHECK(held.In(0, 0, 100).empty());
	CHECK(said(held.In(0, 999000, 1000000)) == "busy 1000;");
	held.Forget(999500);
	CHECK(said(held.In(0, 999000, 1000000)) == "busy 510;");
}

TEST_CASE("a wait is due to deferred work when its thread held the CPU for most of it")
{
	const ft_cpu_slice softirqs = turn(0, "ksoftirqd/0", 0, 1), other = turn(0, "redis-server", 0, 1);
	CHECK(IsDeferred({{1, 60, &softirqs}}, 100));
	CHECK_FALSE(IsDeferred({{1, 50, &softirqs}}, 100));
	CHECK_FALSE(IsDeferred({{2, 60, &other}, {1, 40, &softirqs}}, 100));
	CHECK_FALSE(IsDeferred({}, 100));
}

TEST_CASE("following a recording and explaining it give the same CPU holders")
{
	std::mt19937 random(1);
	auto below = [&](uint32_t n) { return random() % n; };
	const char *const names[] = {"swapper/1", "ksoftirqd/1", "sh", "sh", "redis-server"};
	size_t deferred = 0, idle = 0;
	for (int round = 0; round < 500; round++) {
		Held held;
		RunBuilder b;
		b.Thread(kServer, 0, 10 * ms);
		ft_span &wait = b.Off(FT_IDLE, 0, 100 + below(500), 600 + below(400));
		wait.queue_cpu = 2;
		for (uint64_t at = below(300); at < 1000;) {
			const uint32_t who = below(5);
			const uint64_t end = at + 1 + below(400);
			ft_cpu_slice t = turn(1, names[who], kBase + at, kBase + end);
			t.tid = who;
			// Another wait reported it before it was over.
			ft_cpu_slice before = t;
			before.end_ns = t.start_ns + (end - at) / 2;
			for (const ft_cpu_slice &told : {before, t}) {
				held.Add(told);
				b.run.cpu_slices.push_back(told);
			}
			at = end + below(2) * below(100);
		}
		b.Finish();
		const ft_span &s = b.run.spans[0];
		const auto holders = held.In(1, s.start_ns + s.blocked_ns, s.start_ns + s.duration_ns);
		const WaitHolder explained = HolderOf(b.run, s);
		CHECK(explained.tid == (holders.empty() ? 0 : holders[0].tid));
		CHECK(explained.ns == (holders.empty() ? 0 : holders[0].ns));
		CHECK(explained.name == (holders.empty() ? "" : holders[0].turn->comm));
		CHECK(explained.deferred == IsDeferred(holders, s.runnable_ns));
		CHECK((WaitCauseOf(b.run, s) == Cause::SoftirqDeferred) == explained.deferred);
		deferred += explained.deferred;
		idle += !holders.empty() && !holders[0].tid;
	}
	CHECK(deferred > 10);
	CHECK(idle > 10);
}
