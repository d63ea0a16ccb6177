// SPDX-License-Identifier: MIT
// When helpers that end are started again. The times are made up.
#include "tests/support/catch.h"

#include "loader/system.h"

namespace
{

constexpr uint64_t second = 1'000'000'000;

} // namespace

TEST_CASE("a helper that ends is started again at once, then after longer and longer waits, up to a minute")
{
	restarts r = {};
	CHECK(restarts_due(&r, second));
	uint64_t now = 1000 * second;
	for (const uint64_t wait : {0, 1, 2, 4, 8, 16, 32, 60, 60}) {
		restarts_ended(&r, now);
		CHECK(restarts_due(&r, now + wait * second));
		CHECK((wait == 0 || !restarts_due(&r, now + wait * second - 1)));
		now += wait * second + 1;
	}
	restarts_failed(&r, now);
	CHECK_FALSE(restarts_due(&r, now + 4 * second));
	CHECK(restarts_due(&r, now + 5 * second));
	// Five quiet minutes.
	now += 301 * second;
	restarts_ended(&r, now);
	CHECK(restarts_due(&r, now));
}
