// SPDX-License-Identifier: MIT
// Statistics, checked against values computed by other means.
#include "analysis/compare/comparison.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace forktail::analysis::compare;

TEST_CASE("the sign-flip test's p-values are counts of signs")
{
	CHECK(SignFlipP({}) == 1);
	CHECK(SignFlipP({1}) == Approx(1.0 / 2));
	CHECK(SignFlipP({1, 2, 3}) == Approx(1.0 / 8));
	CHECK(SignFlipP({-1, -2, -3}) == 1);
	// 3 + 2 - 1 = 4: of 8 sums only 6 and 4 are as large.
	CHECK(SignFlipP({3, 2, -1}) == Approx(2.0 / 8));
	// Equal sums count, whatever rounding does to them.
	CHECK(SignFlipP({0.1, 0.2, -0.3}) == Approx(5.0 / 8));
	CHECK(SignFlipP({1, 1, 1, 1, 1, 1}) == Approx(1.0 / 64));
	CHECK(SignFlipP(std::vector<double>(8, 0.1)) == Approx(1.0 / 256));
	CHECK(SignFlipP(std::vector<double>(8, 0.0)) == 1);
	// Darwin's pairs of maize, with which Fisher introduced the test ("The Design of Experiments",
	// section 21): of 2^15 = 32,768 sign choices, 863 have a sum as large.
	CHECK(SignFlipP({49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}) ==
	      Approx(863.0 / 32768));
}

TEST_CASE("for many pairs a sample of signs comes near the exact value")
{
	std::vector<double> d(24, 0);
	for (size_t i = 0; i < d.size(); i++)
		d[i] = i % 3 ? 1 : -1; // 16 up, 8 down: P(Binomial(24, 1/2) >= 16) = 0.0758
	CHECK(SignFlipP(d) == Approx(0.0758).margin(0.003));
}

TEST_CASE("an interval's ends are subset means, and no value inside is rejected")
{
	CHECK(!SignFlipInterval({1, 2, 3, 4, 5}).known);
	// Six: the smallest and the largest of all subset means, 1 of 64 on either side.
	Interval six = SignFlipInterval({1, 2, 3, 4, 5, 7});
	CHECK((six.known && six.low == 1 && six.high == 7));
	// Eight: the sixth from each end, because 6 of 256 are 2.3 %. From below: 1, 1.5, 2, 2 ({2}, {1,3}),
	// 2 ({1,2,3}), 7/3 ({1,2,4}).
	Interval eight = SignFlipInterval({1, 2, 3, 4, 5, 6, 7, 8});
	CHECK(eight.low == Approx(7.0 / 3));
	CHECK(eight.high == Approx(9 - 7.0 / 3));
	std::vector<double> d = {0.3, -0.1, 0.25, 0.4, 0.1, 0.22, 0.35, 0.05};
	Interval interval = SignFlipInterval(d);
	auto p_at = [&](double centre) {
		std::vector<double> moved;
		for (double x : d)
			moved.push_back(x - centre);
		return SignFlipP(moved);
	};
	CHECK(p_at(interval.low + 1e-6) > 0.025);
	CHECK(p_at(interval.low - 1e-6) <= 0.025);
}

TEST_CASE("Holm's correction")
{
	CHECK(Holm({}).empty());
	std::vector<double> p = Holm({0.01, 0.04, 0.03});
	CHECK(p[0] == Approx(0.03));
	CHECK(p[1] == Approx(0.06)); // at least as large as the one before it
	CHECK(p[2] == Approx(0.06));
	CHECK(Holm({0.6, 0.5})[0] == 1);
}

TEST_CASE("the block's length follows the dependence")
{
	Random random(7);
	std::vector<double> white, ar;
	double x = 0;
	for (int i = 0; i < 2000; i++) {
		double e = random.Uniform() - 0.5;
		white.push_back(e);
		ar.push_back(x = 0.8 * x + e);
	}
	CHECK(BlockLength(std::vector<double>(100, 3.0)) == 1);
	CHECK(BlockLength({1, 2, 3}) == 1);
	CHECK(BlockLength(white) < 5);
	// For AR(1) with coefficient r the best is (3/2 n)^(1/3) (2r / (1 - r^2))^(2/3): 39 for 0.8.
	CHECK(BlockLength(ar) > 20);
	CHECK(BlockLength(ar) < 75);
}

TEST_CASE("order statistics")
{
	CHECK(MedianOf({}) == 0);
	CHECK(MedianOf({3, 1, 2}) == 2);
	CHECK(MedianOf({4, 1, 2, 3}) == 2.5);
	CHECK(QuantileOf({5, 1, 4, 2, 3}, 0.8) == 4);
	std::vector<double> values;
	for (int i = 0; i <= 40; i++)
		values.push_back(i);
	Interval middle = MiddleOf(&values);
	CHECK((middle.low == Approx(1) && middle.high == Approx(39)));
}
