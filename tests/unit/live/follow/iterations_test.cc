// SPDX-License-Identifier: MIT
// What is stored about threads for their iterations, and for how long.
#include "live/follow/iterations.h"

#include "tests/support/catch.h"

using namespace forktail::analysis;
using namespace forktail::live;
using namespace forktail::live;

namespace
{

constexpr uint64_t kMs = 1'000'000;

Iteration turn(uint64_t start_ns, uint64_t duration_ns)
{
	Iteration t;
	t.start_ns = start_ns;
	t.duration_ns = duration_ns;
	return t;
}

} // namespace

TEST_CASE("a thread's last iteration is reported, and then its data is dropped")
{
	Iterations turns(kMs);
	Held held;
	std::vector<Iteration> told;
	for (uint32_t tid = 1; tid <= 1000; tid++) {
		turns.AddPart(tid, {10 * kMs, 15 * kMs, 5 * kMs, Cause::Fsync, 0, 0});
		turns.AddTurn(tid, turn(10 * kMs, 8 * kMs), {});
		turns.Ended(tid);
		turns.Tell(held, &told);
	}
	CHECK(turns.threads() <= 1);
	turns.Tell(held, &told);
	CHECK(turns.threads() == 0);
	REQUIRE(told.size() == 1000);
	for (const Iteration &t : told) {
		REQUIRE(t.parts.size() == 2);
		CHECK(t.parts[0].cause == Cause::Fsync);
		CHECK(t.parts[0].ns == 5 * kMs);
		CHECK(t.parts[1].cause == Cause::ServerBusy);
	}
}

TEST_CASE("data of a living thread stays")
{
	Iterations turns(kMs);
	Held held;
	std::vector<Iteration> told;
	turns.AddPart(1, {10 * kMs, 15 * kMs, 5 * kMs, Cause::Fsync, 0, 0});
	turns.Tell(held, &told);
	turns.Tell(held, &told);
	CHECK(turns.threads() == 1);
	turns.AddTurn(1, turn(10 * kMs, 8 * kMs), {});
	turns.Tell(held, &told);
	turns.Tell(held, &told);
	REQUIRE(told.size() == 1);
	CHECK(told[0].parts[0].cause == Cause::Fsync);
}
