// SPDX-License-Identifier: MIT
// One progress number for several passes: it increases and stays below 1 for any number of passes.
#include "analysis/run.h"
#include "tests/support/catch.h"

#include <vector>

using namespace forktail::analysis;

TEST_CASE("progress increases through planned passes, and with more or fewer than planned")
{
	std::vector<double> seen;
	Progress progress([&](double done) { seen.push_back(done); });
	progress.Plan({0.1, 0.5});
	progress.Begin();
	progress.At(0.5);
	CHECK(seen.back() == Approx(0.05));
	progress.At(uint64_t{2}, uint64_t{2});
	CHECK(seen.back() == Approx(0.1));
	progress.Plan({0.6}); // without the second one
	progress.Begin();
	CHECK(seen.back() == Approx(0.1));
	progress.At(1);
	CHECK(seen.back() == Approx(0.6));
	for (int unplanned = 0; unplanned < 5; unplanned++) {
		progress.Begin();
		progress.At(1);
	}
	CHECK(seen.back() == Approx(1 - 0.4 / 32));
	for (size_t i = 1; i < seen.size(); i++)
		CHECK(seen[i] >= seen[i - 1]);
}
