// SPDX-License-Identifier: MIT
// When a snapshot is due, and of which time: one at a time, and not too often.
#include "live/guard/jobs.h"
#include "tests/support/catch.h"

using namespace forktail::live::guard;

namespace
{

constexpr uint64_t kSecond = 1'000'000'000, kBefore = 30 * kSecond, kAfter = 5 * kSecond;

Firing at(uint64_t second)
{
	return {"iteration", "redis-server:6379", "an event-loop iteration", second * kSecond,
		second * kSecond + 1};
}

} // namespace

TEST_CASE("a snapshot reaches from BEFORE to AFTER the event, and waits until that is recorded")
{
	Planner planner(kBefore);
	CHECK(planner.Due(1000 * kSecond, 1000 * kSecond).empty());
	CHECK(planner.Fire(at(100), kBefore, kAfter) == FireResult::Begun);
	CHECK(planner.Due(104 * kSecond, 104 * kSecond).empty());
	CHECK(planner.Due(106 * kSecond, 106 * kSecond).empty()); // its last second may not be written yet
	const Plan due = planner.Due(107 * kSecond, 107 * kSecond);
	REQUIRE_FALSE(due.empty());
	CHECK(due.from_ns == 70 * kSecond);
	CHECK(due.to_ns == 105 * kSecond + 1);
	CHECK(due.fired.size() == 1);
}

TEST_CASE("an ended recorder is not waited for")
{
	Planner planner(kBefore);
	planner.Fire(at(100), kBefore, kAfter);
	CHECK(planner.Due(100 * kSecond, 110 * kSecond).empty());
	CHECK_FALSE(planner.Due(100 * kSecond, 112 * kSecond).empty());
}

TEST_CASE("triggers that fire meanwhile are added, and move the end by at most one minute")
{
	Planner planner(kBefore);
	planner.Fire(at(100), kBefore, kAfter);
	for (uint64_t second = 101; second < 400; second++)
		CHECK(planner.Fire(at(second), kBefore, kAfter) == FireResult::Added);
	CHECK(planner.plan().from_ns == 70 * kSecond);
	CHECK(planner.plan().to_ns == 160 * kSecond + 1);
	CHECK(planner.plan().count == 300);
	CHECK(planner.plan().fired.size() == kMostFirings);
}

TEST_CASE("an event that starts earlier moves the beginning")
{
	Planner planner(kBefore);
	planner.Fire(at(100), kBefore, kAfter);
	planner.Fire({"stall", "", "", 90 * kSecond, 100 * kSecond}, kBefore, kAfter);
	CHECK(planner.plan().from_ns == 60 * kSecond);
}

TEST_CASE("one snapshot at a time, and a cooldown after it")
{
	Planner planner(60 * kSecond);
	planner.Fire(at(100), kBefore, kAfter);
	REQUIRE_FALSE(planner.Due(107 * kSecond, 107 * kSecond).empty());
	// While it is made another one may begin, which is not made before the first is.
	CHECK(planner.Fire(at(107), kBefore, kAfter) == FireResult::Begun);
	CHECK(planner.Due(120 * kSecond, 120 * kSecond).empty());
	planner.Made(121 * kSecond);
	CHECK(planner.Due(180 * kSecond, 180 * kSecond).empty());
	CHECK_FALSE(planner.Due(181 * kSecond, 181 * kSecond).empty());
	planner.Made(182 * kSecond);

	// Early in the cooldown: only counted. Late in it: made once it is over, as "before" reaches that
	// far.
	CHECK(planner.Fire(at(200), kBefore, kAfter) == FireResult::Counted);
	CHECK(planner.counted() == 1);
	CHECK(planner.Fire(at(215), kBefore, kAfter) == FireResult::Begun);
	CHECK(planner.Due(230 * kSecond, 230 * kSecond).empty());
	CHECK_FALSE(planner.Due(242 * kSecond, 242 * kSecond).empty());
}
