// SPDX-License-Identifier: MIT
// Which requests the pass for a run's percentiles without a cause must examine.
#include "tests/support/catch.h"

#include <vector>

#include "analysis/explain/passes.h"

using namespace forktail::analysis;

namespace
{

// Requests with nothing but own code of the server, and their latency without it.
void Add(uint64_t latency_ns, uint64_t without_busy_ns, uint64_t requests, FirstLook *look)
{
	for (uint64_t i = 0; i < requests; i++) {
		look->bounds.Add(static_cast<double>(latency_ns), 0, 1);
		for (size_t c = 0; c < look->without.size(); c++)
			look->without[c].Add(c ? latency_ns : without_busy_ns);
	}
}

LogHistogram AllOf(uint64_t ns)
{
	LogHistogram h;
	for (int i = 0; i < 1000; i++)
		h.Add(ns);
	return h;
}

} // namespace

TEST_CASE("only requests that may be in the slowest percent without a cause are examined")
{
	std::vector<FirstLook> workers(2);
	Floor floor(AllOf(1'000'000));
	Add(1'000'000, 200'000, 1000, &workers[0]);
	CHECK(floor.Of(workers) == 0); // too few for an estimate
	Add(1'000'000, 200'000, 300'000, &workers[1]);
	uint64_t from_ns = floor.Of(workers);
	CHECK(from_ns > 150'000);
	CHECK(from_ns < 200'000);
	FirstLook all;
	all.Merge(workers[0]);
	all.Merge(workers[1]);
	CHECK(floor.Covers(all));
}

TEST_CASE("no more is skipped than most of a run's requests")
{
	std::vector<FirstLook> workers(1);
	Floor floor(AllOf(50'000)); // stalls at the beginning only
	Add(1'000'000, 1'000'000, 300'000, &workers[0]);
	CHECK(floor.Of(workers) <= 50'000);
	CHECK(floor.Of(workers) > 49'000);
}

TEST_CASE("a run that becomes faster than estimated is noticed")
{
	std::vector<FirstLook> workers(1);
	Floor floor(AllOf(1'000'000));
	Add(1'000'000, 900'000, 263'000, &workers[0]);
	CHECK(floor.Of(workers) > 800'000);
	CHECK(floor.Covers(workers[0]));
	// From here on nearly all of it is own code: of all, the slowest percent without it is faster.
	FirstLook rest;
	rest.without[0].slots[LogHistogram::Slot(10'000)] = 30'000'000;
	rest.without[0].count = 30'000'000;
	workers[0].Merge(rest);
	CHECK_FALSE(floor.Covers(workers[0]));
}
