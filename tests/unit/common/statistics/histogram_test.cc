// SPDX-License-Identifier: MIT
// Percentiles of a histogram against those of all values.
#include <algorithm>
#include <random>
#include <vector>

#include "common/statistics.h"
#include "tests/support/catch.h"

using forktail::common::Histogram;
using forktail::common::Rank;

TEST_CASE("percentiles are those of the values, within one part in 128")
{
	std::mt19937_64 random(3);
	for (const int shift : {0, 10, 30, 50}) {
		Histogram h;
		std::vector<uint64_t> values;
		CHECK(h.Percentile(99) == 0);
		for (int i = 0; i < 5000; i++) {
			values.push_back(random() % (uint64_t{1} << (shift + 8)) >> random() % 8);
			h.Add(values.back());
		}
		std::sort(values.begin(), values.end());
		for (const double p : {0.1, 50.0, 99.0, 99.9, 100.0}) {
			const uint64_t exact = values[Rank(values.size(), p) - 1], found = h.Percentile(p);
			INFO(shift << " " << p);
			CHECK(found >= exact);
			CHECK(found - exact <= exact / 128);
		}
		CHECK(h.max() == values.back());
		CHECK(h.Percentile(100) == values.back());
	}
	Histogram one;
	one.Add(UINT64_MAX);
	CHECK(one.Percentile(50) == UINT64_MAX);
}

TEST_CASE("histograms can be added")
{
	Histogram all, more;
	CHECK(all.Percentile(99) == 0);
	for (uint64_t i = 1; i <= 10'000; i++)
		(i % 2 ? all : more).Add(i * 1000);
	all.Add(more);
	CHECK(all.count() == 10'000);
	CHECK(all.max() == 10'000'000);
	for (double p : {1.0, 50.0, 99.0, 99.9}) {
		const double exact = p * 1e5, found = static_cast<double>(all.Percentile(p));
		CAPTURE(p, found);
		CHECK(found >= exact);
		CHECK(found <= exact * (1 + 1.0 / 128) + 1);
	}
	CHECK(all.Percentile(100) == 10'000'000);
	for (uint64_t ns :
	     {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{257}, UINT64_MAX}) {
		Histogram one;
		one.Add(ns);
		one.Add(ns);
		CHECK(one.Percentile(50) <= ns);
	}
}
