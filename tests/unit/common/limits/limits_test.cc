// SPDX-License-Identifier: MIT
// Limits as users write them, texts that must be refused, and their messages.
#include <cmath>
#include <limits>
#include <string>

#include "common/text.h"
#include "tests/support/catch.h"
#include "tests/support/text.h"

using forktail::test::contains;

namespace
{

limit parsed(const char *text)
{
	limit l;
	char error[300] = "";
	INFO(text);
	const bool ok = limit_parse(text, &l, error, sizeof(error));
	INFO(error);
	REQUIRE(ok);
	return l;
}

std::string refused(const std::string &text)
{
	limit l;
	char error[300] = "";
	INFO(text);
	CHECK_FALSE(limit_parse(text.c_str(), &l, error, sizeof(error)));
	return error;
}

std::string sentence(const char *text, double value, limit_reading reading = LIMIT_FAILS_IF)
{
	char out[300];
	const limit l = parsed(text);
	limit_sentence(&l, reading, value, out, sizeof(out));
	return out;
}

bool holds(const char *text, double value)
{
	const limit l = parsed(text);
	return !limit_broken(&l, LIMIT_HAS_TO_HOLD, value);
}

bool broken(const char *text, double value)
{
	const limit l = parsed(text);
	return limit_broken(&l, LIMIT_FAILS_IF, value);
}

} // namespace

TEST_CASE("a limit on a percentile: figure, comparison and a time")
{
	const limit l = parsed("p99>2ms");
	CHECK(std::string(l.of).empty());
	CHECK(std::string(l.figure_name) == "p99");
	CHECK(l.figure == LIMIT_PERCENTILE);
	CHECK(l.percentile == 99);
	CHECK(l.comparison == LIMIT_OVER);
	CHECK(l.value == 2e6);
	CHECK(parsed("p99>2").value == 2e6); // ms without a unit
	CHECK(parsed("p99>2us").value == 2e3);
	CHECK(parsed("p99>1.5s").value == 1.5e9);
	CHECK(parsed("p99>.5ms").value == 0.5e6);
	CHECK(parsed("p99>1e3us").value == 1e6);
	CHECK(parsed("p99>0").value == 0);
	CHECK(parsed("  P99.99  >=  2 MS ").value == 2e6);
	CHECK(parsed("P99.99>2").percentile == 99.99);
	CHECK(parsed("p100>2").percentile == 100);
	CHECK(parsed("p0.1>2").percentile == 0.1);
}

TEST_CASE("all figures and comparisons")
{
	CHECK(parsed("avg>1").figure == LIMIT_AVERAGE);
	CHECK(parsed("min<1us").figure == LIMIT_MINIMUM);
	CHECK(parsed("MAX>1").figure == LIMIT_MAXIMUM);
	CHECK(parsed("stddev>1").figure == LIMIT_STDDEV);
	CHECK(parsed("errors>0").figure == LIMIT_ERRORS);
	CHECK(parsed("errors>0").value == 0);
	CHECK(parsed("errors>0.1%").figure == LIMIT_ERROR_PERCENT);
	CHECK(parsed("errors > 0.1 %").value == 0.1);
	CHECK(parsed("misses>=10").figure == LIMIT_MISSES);
	CHECK(parsed("rps<20000").figure == LIMIT_RPS);
	CHECK(parsed("requests<=1e6").figure == LIMIT_REQUESTS);
	CHECK(parsed("requests<=1e6").value == 1e6);
	CHECK(parsed("MB/s<1.5").figure == LIMIT_MB_PER_S);
	CHECK(parsed("rps>1").comparison == LIMIT_OVER);
	CHECK(parsed("rps>=1").comparison == LIMIT_OVER_OR_AT);
	CHECK(parsed("rps<1").comparison == LIMIT_UNDER);
	CHECK(parsed("rps<=1").comparison == LIMIT_UNDER_OR_AT);
}

TEST_CASE("an operation before the figure, whatever dots it has")
{
	CHECK(std::string(parsed("GET.p99>2ms").of) == "GET");
	CHECK(std::string(parsed("GET.p99.9>2ms").of) == "GET");
	CHECK(parsed("GET.p99.9>2ms").percentile == 99.9);
	CHECK(std::string(parsed("GET.p99.9>2ms").figure_name) == "p99.9");
	CHECK(std::string(parsed("JSON.GET.p99.9>2ms").of) == "JSON.GET");
	CHECK(std::string(parsed("set.errors>1%").of) == "set");
	CHECK(std::string(parsed("p99.9>2ms").of).empty());
}

TEST_CASE("an invalid limit is refused with a reason")
{
	CHECK(contains(refused(""), "has no comparison: expected >, >=, <, <=, = or !="));
	CHECK(contains(refused("p99"), "\"p99\" has no comparison: expected >, >=, <, <=, = or !="));
	CHECK(contains(refused("p99=>2ms"), "is not a number of at least 0"));
	CHECK(contains(refused("p99!2ms"), "has no comparison"));
	CHECK(contains(refused(">2ms"), "no figure before >"));
	CHECK(contains(refused("  <=2ms"), "no figure before <="));
	for (const char *figure : {"p", "p0", "p101", "p-1", "p1e1", "p0x10", "p99.9.9", "pnan", "p 99",
				   "median", "GET", "GET.", "GET.p101", "99", "p99p", "avg!", "errors%"}) {
		INFO(figure);
		CHECK(contains(refused(std::string(figure) + ">2"), "Choose p50"));
	}
	CHECK(contains(refused(".p99>2"), "no operation before the dot"));
	CHECK(contains(refused(std::string(64, 'G') + ".p99>2"), "operation"));
	CHECK(contains(refused("p0." + std::string(21, '0') + "1>2"), "unknown figure"));
	CHECK(contains(refused("p99>" + std::string(200, '1')), "too long"));
	CHECK(contains(refused("p99>1e308s"), "too large"));
	CHECK(contains(refused("p99>"), "p99 has no value"));
	CHECK(contains(refused("p99> "), "p99 has no value"));
	for (const char *value : {"-1", "+1", "ms", "nan", "inf", "0x10", "1e999", ".", ">2", "two"}) {
		INFO(value);
		CHECK(contains(refused(std::string("p99>") + value), "is not a number of at least 0"));
	}
	for (const char *unit : {"m", "ns", "h", "%", "ms2", "msec", "ms ms", "2"})
		CHECK(contains(refused(std::string("p99>2 ") + unit), "expected a time in us, ms or s"));
	CHECK(contains(refused("errors>2ms"), "\"ms\" is not a unit of errors: expected a count"));
	CHECK(contains(refused("errors>2%%"), "is not a unit"));
	CHECK(contains(refused("errors>101%"), "a share is at most 100 %"));
	for (const char *text : {"rps<1k", "misses>1%", "mb/s<1mb", "requests<2ms"}) {
		INFO(text);
		CHECK(contains(refused(text), "expected a plain number"));
	}
}

TEST_CASE("a limit is broken only in its direction, and by a missing figure")
{
	CHECK(broken("p99>2ms", 2000001));
	CHECK_FALSE(broken("p99>2ms", 2000000));
	CHECK(broken("p99>=2ms", 2000000));
	CHECK_FALSE(broken("p99>=2ms", 1999999));
	CHECK(broken("rps<1000", 999.9));
	CHECK_FALSE(broken("rps<1000", 1000));
	CHECK(broken("rps<=1000", 1000));
	CHECK_FALSE(broken("rps<=1000", 1000.1));
	CHECK(broken("errors>0", 1));
	CHECK_FALSE(broken("errors>0", 0));
	for (const char *text : {"p99>2", "p99>=2", "p99<2", "p99<=2"})
		CHECK(broken(text, std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("the messages about a limit")
{
	CHECK(sentence("p99>2ms", 2310000) == "p99 is 2.31 ms, over the limit of 2 ms");
	CHECK(sentence("GET.p99.9 > 500us", 612345) == "GET p99.9 is 612.3 us, over the limit of 500 us");
	CHECK(sentence("max>=1s", 1e9) == "max is 1 s, not below the limit of 1 s");
	CHECK(sentence("rps<20000", 18211.4) == "rps is 18211, under the limit of 20000");
	CHECK(sentence("mb/s<=1.5", 0.25) == "mb/s is 0.25, not above the limit of 1.5");
	CHECK(sentence("errors>0", 12) == "errors is 12, over the limit of 0");
	CHECK(sentence("errors>0.1%", 3.25) == "errors is 3.25 %, over the limit of 0.1 %");
	CHECK(sentence("p99>2ms", 1200000) == "p99 is 1.2 ms, within its limit (over 2 ms fails)");
	CHECK(sentence("rps<=5", 6) == "rps is 6, within its limit (up to 5 fails)");
	CHECK(sentence("p99>2ms", std::nan("")) == "p99 has no value: nothing was measured");
}

TEST_CASE("a figure close to its limit is printed with enough digits to show which side it is on")
{
	CHECK(sentence("p99>2ms", 2000001) == "p99 is 2.000001 ms, over the limit of 2 ms");
	CHECK(sentence("p99<2ms", 1999999) == "p99 is 1.999999 ms, under the limit of 2 ms");
	CHECK(sentence("p99>2.0014ms", 2001420) == "p99 is 2.00142 ms, over the limit of 2.0014 ms");
	CHECK(sentence("errors>0%", 0.00001) == "errors is 0.00001 %, over the limit of 0 %");
}

TEST_CASE("figures of causes and of a recording")
{
	const limit l = parsed("fork.max < 20ms");
	CHECK(std::string(l.of) == "fork");
	CHECK(l.figure == LIMIT_MAXIMUM);
	CHECK_FALSE(l.cause); // an operation may have this name
	CHECK(l.value == 20e6);
	CHECK(parsed("softirq/net_rx.total<=1s").figure == LIMIT_TOTAL);
	CHECK(parsed("softirq/net_rx.total<=1s").cause);
	CHECK(parsed("fork.requests < 10").figure == LIMIT_REQUESTS);
	CHECK(parsed("fork.episodes = 0").figure == LIMIT_EPISODES);
	CHECK(parsed("fork.episodes = 0").cause);
	CHECK(std::string(parsed("episodes < 3").of).empty());
	CHECK(parsed("drops = 0").figure == LIMIT_DROPS);
	CHECK(parsed("drops == 0").comparison == LIMIT_EQUAL);
	CHECK(parsed("drops != 1").comparison == LIMIT_UNEQUAL);
	for (const char *text :
	     {"page-in.share < 1%", "cause share of page-in < 1%", "Cause  Share of  page-in<1 %"}) {
		const limit share = parsed(text);
		CHECK(std::string(share.of) == "page-in");
		CHECK(share.figure == LIMIT_SHARE);
		CHECK(share.cause);
		CHECK(share.value == 1);
	}
	CHECK(std::string(parsed("unknown < 5%").of) == "unknown");
	CHECK(parsed("unknown < 5%").figure == LIMIT_SHARE);
	CHECK(contains(refused("unknown < 5"), "expected a share in %"));
	CHECK(contains(refused("total < 5ms"), "total applies to a cause, as in fork.total"));
	CHECK(contains(refused("cause share of < 1%"), "unknown figure"));
	CHECK(contains(refused("cause share of " + std::string(64, 'x') + " < 1%"), "too long"));
	CHECK(contains(refused("fork.drops = 0"), "unknown figure"));
	CHECK(contains(refused("drops = 0%"), "expected a plain number"));
}

TEST_CASE("figures from a recording are not available to the load generator")
{
	for (const char *text : {"p99>2ms", "GET.errors>1%", "fork.max>1", "mb/s<1", "requests=5"}) {
		const limit l = parsed(text);
		CHECK(limit_is_of_load(&l));
	}
	for (const char *text :
	     {"fork.total>2ms", "unknown>1%", "drops>1", "episodes>1", "p99 no worse than BASE"}) {
		const limit l = parsed(text);
		CHECK_FALSE(limit_is_of_load(&l));
	}
}

TEST_CASE("a limit that has to hold cannot demand slow or failed requests, or a low rate")
{
	auto refusal = [](const char *text) {
		const limit l = parsed(text);
		char error[512] = "";
		const bool can_hold = limit_can_hold(&l, text, error, sizeof(error));
		CHECK(can_hold == !*error);
		return std::string(error);
	};
	CHECK(refusal("p99.9 > 5ms") == "\"p99.9 > 5ms\" holds only while requests are slow, and a limit is "
					"what has to hold: write \"p99.9 < 5ms\"");
	CHECK(contains(refusal("GET.max>=1s"), "write \"GET.max<=1s\""));
	CHECK(contains(refusal("fork.total > 2ms"), "write \"fork.total < 2ms\""));
	CHECK(refusal("errors > 0") ==
	      "\"errors > 0\" holds only while requests fail, and a limit is what has "
	      "to hold: write \"errors = 0\"");
	CHECK(contains(refusal("GET.errors>=0"), "write \"GET.errors=0\""));
	CHECK(contains(refusal("errors > 0.1%"), "write \"errors < 0.1%\""));
	CHECK(refusal("rps < 1000") == "\"rps < 1000\" holds only while the rate is low, and a limit is what "
				       "has to hold: write \"rps > 1000\"");
	CHECK(contains(refusal("mb/s <= 5"), "write \"mb/s >= 5\""));
	for (const char *text : {"p99 < 5ms", "p99 <= 5ms", "errors = 0", "errors < 1%", "rps > 5", "rps = 5",
				 "requests > 5", "requests < 5", "misses > 5", "fork.episodes > 0",
				 "fork.share > 50%", "drops = 0", "p99 no worse than BASE", "max = 0"})
		CHECK(refusal(text).empty());
}

TEST_CASE("a required limit is the same comparison, reversed")
{
	CHECK(holds("p99<2ms", 1999999));
	CHECK_FALSE(holds("p99<2ms", 2000000));
	CHECK(holds("p99<=2ms", 2000000));
	CHECK(holds("drops = 0", 0));
	CHECK_FALSE(holds("drops = 0", 1));
	CHECK(holds("drops != 1", 0));
	CHECK(broken("drops = 0", 0));
	CHECK_FALSE(broken("drops != 0", 0));
	for (const char *text : {"p99>2", "p99>=2", "p99<2", "p99<=2", "p99=2", "p99!=2"}) {
		CHECK_FALSE(holds(text, std::nan("")));
		CHECK(broken(text, std::nan("")));
	}
	CHECK(sentence("p99.9 < 5ms", 21.4e6, LIMIT_HAS_TO_HOLD) == "p99.9 is 21.4 ms, over 5 ms");
	CHECK(sentence("p99.9 < 5ms", 1.2e6, LIMIT_HAS_TO_HOLD) == "p99.9 is 1.2 ms, under 5 ms");
	CHECK(sentence("p99.9 < 5ms", 5e6, LIMIT_HAS_TO_HOLD) == "p99.9 is 5 ms, which is not under 5 ms");
	CHECK(sentence("min < 1s", 52300, LIMIT_HAS_TO_HOLD) == "min is 52.3 us, under 1 s");
	CHECK(sentence("min < 1s", 999999999, LIMIT_HAS_TO_HOLD) == "min is 999.999999 ms, under 1 s");
	CHECK(sentence("min < 1us", 1e9, LIMIT_HAS_TO_HOLD) == "min is 1 s, over 1 us");
	CHECK(sentence("fork.max < 1us", 0, LIMIT_HAS_TO_HOLD) == "fork max is 0 us, under 1 us");
	CHECK(sentence("drops = 0", 0, LIMIT_HAS_TO_HOLD) == "drops is 0");
	CHECK(sentence("drops = 0", 3, LIMIT_HAS_TO_HOLD) == "drops is 3, over 0");
	CHECK(sentence("drops != 0", 0, LIMIT_HAS_TO_HOLD) == "drops is 0, which is not other than 0");
	CHECK(sentence("page-in.share<1%", 2, LIMIT_HAS_TO_HOLD) == "page-in share is 2 %, over 1 %");
	CHECK(sentence("drops=0", 0) == "drops is 0, exactly the forbidden 0");
	CHECK(sentence("drops!=0", 3) == "drops is 3, not the wanted 0");
}

TEST_CASE("no worse than a base")
{
	const limit l = parsed("GET.p99.9 no worse than BASE by more than 10%");
	CHECK(std::string(l.of) == "GET");
	CHECK(l.comparison == LIMIT_NO_WORSE);
	CHECK(l.base_share);
	limit against = limit_against(&l, 2e6);
	CHECK(against.comparison == LIMIT_UNDER_OR_AT);
	CHECK(against.value == Approx(2.2e6));
	CHECK(std::string(against.unit) == "ms");
	CHECK_FALSE(limit_broken(&against, LIMIT_HAS_TO_HOLD, 2.1e6));
	CHECK(limit_broken(&against, LIMIT_HAS_TO_HOLD, 2.3e6));
	char told[300];
	against = limit_against(&l, 1073914);
	limit_sentence(&against, LIMIT_HAS_TO_HOLD, 26.25e6, told, sizeof(told));
	CHECK(std::string(told) == "GET p99.9 is 26.25 ms, over 1.181 ms");
	limit_sentence(&against, LIMIT_HAS_TO_HOLD, 1181305, told, sizeof(told));
	CHECK(std::string(told) == "GET p99.9 is 1.181305 ms, under 1.1813054 ms");
	const limit work = parsed("rps  No Worse than base  by more than 5 %");
	against = limit_against(&work, 1000);
	CHECK(against.comparison == LIMIT_OVER_OR_AT);
	CHECK(against.value == 950);
	const limit time = parsed("max no worse than BASE by more than 2ms");
	against = limit_against(&time, 1e6);
	CHECK_FALSE(time.base_share);
	CHECK(against.value == 3e6);
	const limit share = parsed("page-in.share no worse than BASE by more than 2%");
	against = limit_against(&share, 1);
	CHECK(against.value == 3); // for shares, percent means percentage points
	const limit same = parsed("drops no worse than BASE");
	against = limit_against(&same, 4);
	CHECK(against.value == 4);
	CHECK(contains(refused("no worse than BASE"), "no figure before no worse than BASE"));
	CHECK(contains(refused("p99 no worse than BASE by more than"), "no comparison"));
	CHECK(contains(refused("p99 no worse than BASE by less than 2%"), "no comparison"));
	CHECK(contains(refused("p99 no worse than BASEMENT"), "no comparison"));
	CHECK(contains(refused("p99 no worse than BASE by more than ten"), "is not a number of at least 0"));
}
