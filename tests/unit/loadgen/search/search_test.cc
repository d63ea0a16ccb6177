// SPDX-License-Identifier: MIT
// The search for a rate, against servers whose true limit is known: exact ones, ones whose runs vary, and
// ones without an answer.
#include <functional>
#include <random>

#include "loadgen/run/search.h"
#include "tests/support/catch.h"

namespace
{

using Run = std::function<search_verdict(double rate)>;

// Runs a search to its end.
search searched(double first, uint32_t repeat, const Run &run, bool client = false)
{
	search s;
	search_begin(&s, first, repeat);
	for (double rate; (rate = search_next(&s)) > 0;) {
		REQUIRE(s.runs < SEARCH_RUNS_MAX);
		search_tell(&s, run(rate), client);
	}
	return s;
}

// A server that holds every rate up to `limit`, and is far behind at twice that.
Run exact(double limit)
{
	return [limit](double rate) {
		return rate <= limit ? SEARCH_HELD : rate < 2 * limit ? SEARCH_FAILED : SEARCH_FAILED_FAR;
	};
}

TEST_CASE("the limit is found from below and from above, within a hundredth")
{
	for (const double limit : {7.0, 950.0, 41200.0, 1234567.0})
		for (const double first : {limit / 30, limit / 2, limit * 0.999, limit * 1.001, limit * 40}) {
			const search s = searched(first, 3, exact(limit));
			CAPTURE(limit, first);
			CHECK(s.end == SEARCH_FOUND);
			const search_rate *highest = search_highest(&s), *beyond = search_beyond(&s);
			REQUIRE(highest);
			REQUIRE(beyond);
			CHECK(highest->rate <= limit);
			CHECK(beyond->rate > limit);
			CHECK(beyond->rate / highest->rate <= SEARCH_RATIO + 1e-9);
			CHECK(highest->runs == 3);
			CHECK(highest->held == 3);
			CHECK(beyond->held == 0);
			CHECK((beyond->runs == 3 || beyond->far));
			CHECK(s.runs < 50);
		}
}

TEST_CASE("one bad run at a rate that holds is repeated and does not decide")
{
	int bad = 3; // the third run fails at whatever rate it is
	const search s =
	    searched(1000, 1, [&](double rate) { return --bad == 0 ? SEARCH_FAILED : exact(5000)(rate); });
	CHECK(s.end == SEARCH_FOUND);
	CHECK(search_highest(&s)->rate > 4900);
}

TEST_CASE("runs that vary around the limit give an answer near it")
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		std::mt19937 random(seed);
		std::normal_distribution<double> varies(1, 0.02);
		const search s =
		    searched(300, 3, [&](double rate) { return exact(1000 * varies(random))(rate); });
		CAPTURE(seed, s.runs);
		REQUIRE(search_highest(&s));
		CHECK(search_highest(&s)->rate > 900);
		CHECK(search_highest(&s)->rate < 1100);
		CHECK((s.end == SEARCH_FOUND || s.end == SEARCH_UNDECIDED));
		// Both sides have a majority, or it is said that there is no answer.
		if (s.end == SEARCH_FOUND)
			CHECK(2 * search_beyond(&s)->held < search_beyond(&s)->runs);
	}
}

TEST_CASE("a limit that no rate holds ends the search, and so does a client at its limit")
{
	search s = searched(50000, 3, [](double) { return SEARCH_FAILED; });
	CHECK(s.end == SEARCH_NONE_HELD);
	CHECK(!search_highest(&s));
	s = searched(1000, 3, exact(5000), true);
	CHECK(s.end == SEARCH_CLIENT);
	CHECK(search_highest(&s)->rate <= 5000);
	CHECK(search_beyond(&s)->rate / search_highest(&s)->rate <= SEARCH_RATIO_CLIENT);
	CHECK(search_beyond(&s)->client);
}

TEST_CASE("a server that never fails and one that is a coin end the search, too")
{
	search s = searched(1e8, 3, [](double) { return SEARCH_HELD; });
	CHECK(s.end == SEARCH_UNDECIDED);
	std::mt19937 random(7);
	s = searched(1000, 9, [&](double) { return random() % 2 ? SEARCH_HELD : SEARCH_FAILED; });
	CHECK(s.end != SEARCH_GOES_ON);
}

} // namespace
