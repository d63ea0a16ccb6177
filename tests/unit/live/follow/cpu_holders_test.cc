// SPDX-License-Identifier: MIT
// Which task had a CPU while another one waited for it.
#include "live/follow/state.h"

#include <cstring>
#include <random>

#include "common/json.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;
using forktail::live::CpuSlices;

namespace
{

ft_cpu_slice slice(uint16_t cpu, const char *comm, uint64_t start_ns, uint64_t end_ns)
{
	ft_cpu_slice t = {};
	t.start_ns = start_ns;
	t.end_ns = end_ns;
	t.cpu = cpu;
	t.tid = static_cast<uint32_t>(comm[0]); // each name belongs to one task
	strncpy(t.comm.raw, comm, sizeof t.comm.raw - 1);
	return t;
}

std::string text(const std::vector<CpuHolder> &holders)
{
	std::string s;
	for (const CpuHolder &h : holders)
		s += forktail::common::VisibleName(h.slice->comm) + (" " + std::to_string(h.ns)) + ";";
	return s;
}

} // namespace

TEST_CASE("the holders of a CPU, longest first, whatever the order of the slices")
{
	forktail::live::CpuSlices slices;
	slices.Add(slice(0, "last", 500, 600));
	slices.Add(slice(0, "hog", 100, 400));
	slices.Add(slice(0, "next", 400, 480));
	slices.Add(slice(1, "elsewhere", 100, 600));
	slices.Add(slice(0, "hog", 600, 900));
	CHECK(text(slices.In(0, 300, 550)) == "hog 100;next 80;last 50;");
	CHECK(text(slices.In(0, 0, 1000)) == "hog 600;last 100;next 80;");
	CHECK(text(slices.In(0, 200, 210)) == "hog 10;");
	CHECK(slices.In(0, 900, 1000).empty());
	CHECK(slices.In(2, 0, 1000).empty());
}

TEST_CASE("a slice that is reported again when it is longer counts once")
{
	forktail::live::CpuSlices slices;
	slices.Add(slice(0, "hog", 100, 200));
	slices.Add(slice(0, "hog", 100, 700));
	slices.Add(slice(0, "hog", 100, 300));
	CHECK(text(slices.In(0, 0, 1000)) == "hog 600;");
}

TEST_CASE("an idle CPU has no holder")
{
	CpuSlices slices;
	ft_cpu_slice idle = slice(0, "swapper/0", 100, 200);
	idle.tid = 0;
	slices.Add(idle);
	const auto holders = slices.In(0, 0, 1000);
	CHECK((holders.size() == 1 && holders[0].tid == 0));
}

TEST_CASE("old slices are dropped and memory stays limited")
{
	forktail::live::CpuSlices slices;
	for (uint64_t i = 0; i < 100000; i++)
		slices.Add(slice(0, "busy", 10 * i, 10 * i + 10));
	CHECK(slices.In(0, 0, 100).empty());
	CHECK(text(slices.In(0, 999000, 1000000)) == "busy 1000;");
	slices.Forget(999500);
	CHECK(text(slices.In(0, 999000, 1000000)) == "busy 510;");
}

TEST_CASE("a wait is due to deferred work when its thread had the CPU for most of it")
{
	const ft_cpu_slice softirqs = slice(0, "ksoftirqd/0", 0, 1), other = slice(0, "redis-server", 0, 1);
	CHECK(IsDeferred({{1, 60, &softirqs}}, 100));
	CHECK_FALSE(IsDeferred({{1, 50, &softirqs}}, 100));
	CHECK_FALSE(IsDeferred({{2, 60, &other}, {1, 40, &softirqs}}, 100));
	CHECK_FALSE(IsDeferred({}, 100));
}

TEST_CASE("the follower and explain find the same holder of a CPU")
{
	std::mt19937 random(1);
	auto below = [&](uint32_t n) { return random() % n; };
	const char *const names[] = {"swapper/1", "ksoftirqd/1", "sh", "sh", "redis-server"};
	size_t deferred = 0, idle = 0;
	for (int round = 0; round < 500; round++) {
		CpuSlices slices;
		RunBuilder b;
		b.Thread(kServer, 0, 10 * ms);
		ft_span &wait = b.Off(FT_IDLE, 0, 100 + below(500), 600 + below(400));
		wait.queue_cpu = 2;
		for (uint64_t at = below(300); at < 1000;) {
			const uint32_t who = below(5);
			const uint64_t end = at + 1 + below(400);
			ft_cpu_slice t = slice(1, names[who], kBase + at, kBase + end);
			t.tid = who;
			// Another wait reported it before it was over.
			ft_cpu_slice before = t;
			before.end_ns = t.start_ns + (end - at) / 2;
			for (const ft_cpu_slice &reported : {before, t}) {
				slices.Add(reported);
				b.run.cpu_slices.push_back(reported);
			}
			at = end + below(2) * below(100);
		}
		b.Finish();
		const ft_span &s = b.run.spans[0];
		const auto holders = slices.In(1, s.start_ns + s.blocked_ns, s.start_ns + s.duration_ns);
		const WaitHolder explained = HolderOf(b.run, s);
		CHECK(explained.tid == (holders.empty() ? 0 : holders[0].tid));
		CHECK(explained.ns == (holders.empty() ? 0 : holders[0].ns));
		CHECK(explained.name ==
		      (holders.empty() ? "" : forktail::common::VisibleName(holders[0].slice->comm)));
		CHECK(explained.deferred == IsDeferred(holders, s.runnable_ns));
		CHECK((WaitCauseOf(b.run, s) == Cause::SoftirqDeferred) == explained.deferred);
		deferred += explained.deferred;
		idle += !holders.empty() && !holders[0].tid;
	}
	CHECK(deferred > 10);
	CHECK(idle > 10);
}
