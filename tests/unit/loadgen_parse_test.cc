// SPDX-License-Identifier: MIT
// Numbers as users write them, and what must not pass for one.
#include "loadgen/parse.h"
#include "tests/support/catch.h"

TEST_CASE("counts")
{
	uint64_t n = 0;
	CHECK((parse_count("0", 0, 10, &n) && n == 0));
	CHECK((parse_count("18446744073709551615", 0, UINT64_MAX, &n) && n == UINT64_MAX));
	for (const char *text :
	     {"", "-1", "+1", " 1", "1 ", "1k", "0x10", "1.5", "18446744073709551616", "ten"}) {
		INFO(text);
		CHECK_FALSE(parse_count(text, 0, UINT64_MAX, &n));
	}
	CHECK_FALSE(parse_count("11", 0, 10, &n));
	CHECK_FALSE(parse_count("0", 1, 10, &n));
}

TEST_CASE("rates")
{
	double v = 0;
	CHECK((parse_positive("20000", 1e9, &v) && v == 20000));
	CHECK((parse_positive("0.5", 1e9, &v) && v == 0.5));
	CHECK((parse_positive("1e3", 1e9, &v) && v == 1000));
	for (const char *text : {"", "0", "-1", "nan", "inf", "1e999", "0x10", "20k", "1,000"}) {
		INFO(text);
		CHECK_FALSE(parse_positive(text, 1e9, &v));
	}
}

TEST_CASE("times")
{
	uint64_t ns = 0;
	CHECK((parse_duration("10", false, &ns) && ns == 10000000000));
	CHECK((parse_duration("10s", false, &ns) && ns == 10000000000));
	CHECK((parse_duration("2.5s", false, &ns) && ns == 2500000000));
	CHECK((parse_duration("500ms", false, &ns) && ns == 500000000));
	CHECK((parse_duration("20us", false, &ns) && ns == 20000));
	CHECK((parse_duration("3m", false, &ns) && ns == 180000000000));
	CHECK((parse_duration("1h", false, &ns) && ns == 3600000000000));
	CHECK((parse_duration("0", true, &ns) && ns == 0));
	for (const char *text : {"", "0", "s", "-1", "1d", "1 s", "1s2", "nan", "1e300", "1e10"}) {
		INFO(text);
		CHECK_FALSE(parse_duration(text, false, &ns));
	}
}

TEST_CASE("ratios")
{
	uint32_t a = 0, b = 0;
	CHECK((parse_ratio("1:4", &a, &b) && a == 1 && b == 4));
	CHECK((parse_ratio("0:1", &a, &b) && a == 0 && b == 1));
	for (const char *text : {"", "1", "1:", ":1", "0:0", "1:2:3", "-1:2", "1:1000001", "a:b"}) {
		INFO(text);
		CHECK_FALSE(parse_ratio(text, &a, &b));
	}
}
