// SPDX-License-Identifier: MIT
// The throughput of single seconds, with rates and ranks computed by hand.
#include <memory>

#include "loadgen/results.h"
#include "tests/support/catch.h"

namespace
{

TEST_CASE("a rate is reached by a share of the seconds")
{
	mix m = {};
	mix_add(&m, 0, 1);
	mix_close(&m);
	std::unique_ptr<stats, decltype(&stats_free)> second(stats_new(&m), stats_free);
	second_rates r = {};
	CHECK(second_rates_reached(&r, 99) == 0);
	for (uint64_t i = 100; i-- > 0;) { // 99 to 0 answers
		stats_reset(second.get());
		second->span_ns = 1000000000;
		second->operations[0]->status[FT_STATUS_OK] = i;
		second->operations[0]->status[FT_STATUS_TIMEOUT] = 50; // not an answer
		second_rates_add(&r, second.get());
	}
	second->span_ns = 500000000; // the end of a run
	second_rates_add(&r, second.get());
	CHECK(r.count == 100);
	CHECK(second_rates_reached(&r, 50) == 50); // 99 to 50 are 50 seconds
	CHECK(second_rates_reached(&r, 99) == 1);
	CHECK(second_rates_reached(&r, 100) == 0);
	CHECK(second_rates_reached(&r, 1) == 99);
	second->span_ns = 2000000000;
	second->operations[0]->status[FT_STATUS_OK] = 1000;
	second_rates_add(&r, second.get());
	CHECK(second_rates_reached(&r, 0.5) == 500);
	second_rates_free(&r);
}

} // namespace
