// SPDX-License-Identifier: MIT
// How long the state of threads is stored for their iterations.
#include "live/follow/state.h"

#include "tests/support/catch.h"

using namespace forktail::analysis;
using namespace forktail::live;
using namespace forktail::live;

namespace
{

constexpr uint64_t kMs = 1'000'000;

Iteration iteration(uint64_t start_ns, uint64_t duration_ns)
{
	Iteration t;
	t.start_ns = start_ns;
	t.duration_ns = duration_ns;
	return t;
}

} // namespace

TEST_CASE("an ended thread's last iteration is reported and its state is dropped")
{
	Iterations iterations(kMs);
	CpuSlices slices;
	std::vector<Iteration> reported;
	for (uint32_t tid = 1; tid <= 1000; tid++) {
		iterations.AddPart(tid, {10 * kMs, 15 * kMs, 5 * kMs, Cause::Fsync, 0, 0});
		iterations.AddIteration(tid, iteration(10 * kMs, 8 * kMs), {});
		iterations.Ended(tid);
		iterations.Report(slices, &reported);
	}
	CHECK(iterations.threads() <= 1);
	iterations.Report(slices, &reported);
	CHECK(iterations.threads() == 0);
	REQUIRE(reported.size() == 1000);
	for (const Iteration &t : reported) {
		REQUIRE(t.parts.size() == 2);
		CHECK(t.parts[0].cause == Cause::Fsync);
		CHECK(t.parts[0].ns == 5 * kMs);
		CHECK(t.parts[1].cause == Cause::ServerBusy);
	}
}

TEST_CASE("the state of a running thread stays")
{
	Iterations iterations(kMs);
	CpuSlices slices;
	std::vector<Iteration> reported;
	iterations.AddPart(1, {10 * kMs, 15 * kMs, 5 * kMs, Cause::Fsync, 0, 0});
	iterations.Report(slices, &reported);
	iterations.Report(slices, &reported);
	CHECK(iterations.threads() == 1);
	iterations.AddIteration(1, iteration(10 * kMs, 8 * kMs), {});
	iterations.Report(slices, &reported);
	iterations.Report(slices, &reported);
	REQUIRE(reported.size() == 1);
	CHECK(reported[0].parts[0].cause == Cause::Fsync);
}
