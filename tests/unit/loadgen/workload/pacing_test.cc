// SPDX-License-Identifier: MIT
// Arrival instants: their spacing, their distribution, and that a seed repeats them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"

namespace
{

constexpr uint64_t kSecond = 1000000000;

std::vector<uint64_t> instants(arrival kind, double rate, uint64_t end_ns, uint64_t count, uint64_t seed = 1,
			       double phase = 0)
{
	pacing p;
	std::vector<uint64_t> all;
	pacing_start(&p, kind, rate, phase, kSecond, end_ns, count, random_begin(seed, 0, 3));
	for (; p.due_ns != PACING_NEVER; pacing_take(&p))
		all.push_back(p.due_ns);
	return all;
}

} // namespace

TEST_CASE("constant arrivals are evenly spaced and do not drift")
{
	// An interval of 333,333.33 ns: whole nanoseconds would add up to an error of 1 ms after an hour.
	const auto all = instants(ARRIVAL_CONSTANT, 3000, PACING_NEVER, 3000 * 3600 + 1);
	REQUIRE(all.size() == 3000 * 3600 + 1);
	CHECK(all.front() == kSecond);
	CHECK(all.back() == kSecond + 3600 * kSecond);
	for (size_t i = 1; i < all.size(); i++)
		if (all[i] - all[i - 1] < 333333 || all[i] - all[i - 1] > 333334)
			FAIL("gap of " << all[i] - all[i - 1] << " ns");
}

TEST_CASE("the sequence ends before its end and after its count")
{
	CHECK(instants(ARRIVAL_CONSTANT, 1000, 2 * kSecond, UINT64_MAX).size() == 1000);
	CHECK(instants(ARRIVAL_CONSTANT, 1000, 2 * kSecond, 10).size() == 10);
	CHECK(instants(ARRIVAL_CONSTANT, 1000, 2 * kSecond, 0).empty());
	const auto all = instants(ARRIVAL_POISSON, 1000, 2 * kSecond, UINT64_MAX);
	CHECK(all.back() < 2 * kSecond);
}

TEST_CASE("the end of a sequence is its end, or the last instant of its count")
{
	for (const arrival kind : {ARRIVAL_CONSTANT, ARRIVAL_POISSON}) {
		pacing p;
		const random_stream random = random_begin(1, 0, 3);
		pacing_start(&p, kind, 1000, 0, kSecond, 5 * kSecond, 10, random);
		CHECK(pacing_end_ns(&p) == 5 * kSecond);
		pacing_start(&p, kind, 1000, 0, kSecond, PACING_NEVER, UINT64_MAX, random);
		CHECK(pacing_end_ns(&p) == PACING_NEVER);
		pacing_start(&p, kind, 1000, 0, kSecond, PACING_NEVER, 10, random);
		const uint64_t due_ns = p.due_ns, end_ns = pacing_end_ns(&p);
		CHECK(p.due_ns == due_ns);
		CHECK(end_ns == instants(kind, 1000, PACING_NEVER, 10).back());
		for (int i = 0; i < 10; i++)
			pacing_take(&p);
		CHECK(pacing_end_ns(&p) == PACING_NEVER); /* nothing is left */
	}
}

TEST_CASE("threads that share a rate interleave")
{
	CHECK(instants(ARRIVAL_CONSTANT, 1000, PACING_NEVER, 1, 1, 0.25).front() == kSecond + 250000);
}

TEST_CASE("Poisson arrivals have the mean and the spread of an exponential gap")
{
	const size_t count = 1000000;
	const double mean = 1e9 / 20000;
	const auto all = instants(ARRIVAL_POISSON, 20000, PACING_NEVER, count);
	REQUIRE(all.size() == count);
	double sum = 0, squares = 0;
	size_t beyond = 0;
	uint64_t before = kSecond;
	for (uint64_t at : all) {
		const double gap = static_cast<double>(at - before);
		sum += gap;
		squares += gap * gap;
		beyond += gap > 3 * mean;
		before = at;
	}
	// Five standard errors on each side. The seed is fixed, so this passes always or never.
	const double n = static_cast<double>(count);
	CHECK(sum / n == Approx(mean).epsilon(5 / std::sqrt(n)));
	const double deviation = std::sqrt(squares / n - sum / n * (sum / n));
	CHECK(deviation == Approx(mean).epsilon(0.01));
	CHECK(static_cast<double>(beyond) / n == Approx(std::exp(-3)).epsilon(0.03));
}

TEST_CASE("a seed repeats the arrivals, another seed does not")
{
	const auto a = instants(ARRIVAL_POISSON, 1000, PACING_NEVER, 1000, 5);
	CHECK(a == instants(ARRIVAL_POISSON, 1000, PACING_NEVER, 1000, 5));
	CHECK(a != instants(ARRIVAL_POISSON, 1000, PACING_NEVER, 1000, 6));
	CHECK(std::is_sorted(a.begin(), a.end()));
}

TEST_CASE("stopping keeps the arrivals already due and no later ones")
{
	pacing p;
	pacing_start(&p, ARRIVAL_CONSTANT, 1000, 0, kSecond, PACING_NEVER, UINT64_MAX, random_begin(1, 0, 3));
	pacing_stop(&p, kSecond + 2000000);
	std::vector<uint64_t> left;
	for (; p.due_ns != PACING_NEVER; pacing_take(&p))
		left.push_back(p.due_ns);
	CHECK(left == std::vector<uint64_t>{kSecond, kSecond + 1000000, kSecond + 2000000});
}

TEST_CASE("streams of random numbers are uniform and independent")
{
	random_stream a = random_begin(1, 0, 1), b = random_begin(1, 0, 2), c = random_begin(1, 1, 1);
	std::vector<uint64_t> counts(100);
	for (int i = 0; i < 1000000; i++)
		counts[random_below(&a, 100)]++;
	double chi = 0;
	for (uint64_t n : counts)
		chi += (static_cast<double>(n) - 10000) * (static_cast<double>(n) - 10000) / 10000;
	CHECK(chi < 150); // 99 degrees of freedom: 1 in 1000 is above 149
	CHECK(random_next(&b) != random_next(&c));
	for (int i = 0; i < 1000; i++) {
		const double u = random_unit(&a);
		REQUIRE((u > 0 && u <= 1));
	}
}
