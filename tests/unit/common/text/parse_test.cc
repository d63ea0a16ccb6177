// SPDX-License-Identifier: MIT
// Numbers as users write them, and texts that must be refused.
#include <string>

#include "common/text.h"
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

TEST_CASE("numbers as users write them short")
{
	const struct {
		const char *text;
		uint64_t number; // 0: refused
	} amounts[] = {{"7", 7},	   {"10k", 10'000},
		       {"1K", 1000},	   {"1.5M", 1'500'000},
		       {"1e6", 1'000'000}, {"2G", 2'000'000'000},
		       {"1.1k", 1100},	   {"1T", 1'000'000'000'000},
		       {"1.5", 0},	   {"1.0005k", 0},
		       {"k", 0},	   {"1kk", 0},
		       {"1 k", 0},	   {"-1k", 0},
		       {"1e30", 0},	   {"18446744073709551615", UINT64_MAX}};
	for (const auto &[text, wanted] : amounts) {
		INFO(text);
		uint64_t n = 0;
		CHECK(parse_amount(text, 1, UINT64_MAX, &n) == (wanted > 0));
		if (wanted)
			CHECK(n == wanted);
	}
	uint64_t n = 0;
	CHECK_FALSE(parse_amount("10k", 1, 9999, &n));
	double rate = 0;
	CHECK((parse_rate("20k", 1e9, &rate) && rate == 20000));
	CHECK((parse_rate("0.5", 1e9, &rate) && rate == 0.5));
	for (const char *text : {"", "0", "0k", "-1", "2000M", "1x"}) {
		INFO(text);
		CHECK_FALSE(parse_rate(text, 1e9, &rate));
	}
}

TEST_CASE("the name that a misspelled one means")
{
	const char *const names[] = {"fork", "fsync", "cow-copy", "server-busy", "softirq/net_rx", "get"};
	const struct {
		const char *text, *meant;
	} words[] = {{"forks", "fork"},
		     {"frok", "fork"},
		     {"fsnyc", "fsync"},
		     {"cow_copy", "cow-copy"},
		     {"serverbusy", "server-busy"},
		     {"softirq/netrx", "softirq/net_rx"},
		     {"gte", "get"},
		     {"weather", nullptr},
		     {"", nullptr},
		     {"x", nullptr},
		     {"a-name-that-is-longer-than-any-of-ours-is", nullptr}};
	for (const auto &[text, meant] : words) {
		INFO(text);
		const char *closest = closest_name(text, names, std::size(names));
		CHECK((closest ? std::string(closest) : "none") == (meant ? meant : "none"));
	}
}

TEST_CASE("numbers at the beginning of a text")
{
	const char *text = "99.5%";
	double v = 0;
	REQUIRE(parse_number(&text, &v));
	CHECK(v == 99.5);
	CHECK(std::string(text) == "%");
	for (const char *bad : {"", "%", "-1", "+1", " 1", "nan", "inf", "0x1p3", "1e999", "."}) {
		INFO(bad);
		CHECK_FALSE(parse_number(&bad, &v));
	}
}

TEST_CASE("times")
{
	static const struct {
		const char *text;
		unsigned units, bare;
		bool good;
		uint64_t ns;
	} kTimes[] = {
	    {"10", TIME_ANY, TIME_S, true, 10000000000},
	    {"10s", TIME_ANY, TIME_S, true, 10000000000},
	    {"2.5s", TIME_ANY, TIME_S, true, 2500000000},
	    {".5s", TIME_ANY, TIME_S, true, 500000000},
	    {"500ms", TIME_ANY, TIME_S, true, 500000000},
	    {"20us", TIME_ANY, TIME_S, true, 20000},
	    {"500us", TIME_ANY, TIME_S, true, 500000},
	    {"7ns", TIME_ANY, TIME_S, true, 7},
	    {"0.7ns", TIME_ANY, TIME_S, true, 1},
	    {"3m", TIME_ANY, TIME_S, true, 180000000000},
	    {"1h", TIME_ANY, TIME_S, true, 3600000000000},
	    {"1.5d", TIME_ANY | TIME_D, TIME_S, true, 129600000000000},
	    {"1e3ms", TIME_ANY, TIME_S, true, 1000000000},
	    {"0", TIME_ANY, TIME_S, true, 0},
	    {"0h", TIME_ANY, TIME_S, true, 0},
	    {"1e9", TIME_ANY, TIME_S, true, 1000000000000000000},
	    // The caller decides what a number without a unit means.
	    {"5", TIME_ANY, TIME_NS, true, 5},
	    {"5", TIME_ANY, TIME_US, true, 5000},
	    {"5", TIME_ANY, TIME_MS, true, 5000000},
	    {"5", TIME_ANY, TIME_M, true, 300000000000},
	    {"5", TIME_ANY, TIME_H, true, 18000000000000},
	    {"5s", TIME_ANY, TIME_US, true, 5000000000},
	    {"5", TIME_ANY, 0, false, 0},
	    {"0", TIME_ANY, 0, false, 0},
	    // The caller also decides which units exist.
	    {"1m", TIME_MS | TIME_S, 0, false, 0},
	    {"1ms", TIME_MS | TIME_S, 0, true, 1000000},
	    {"1us", TIME_MS | TIME_S, 0, false, 0},
	    {"1ns", TIME_ANY & ~TIME_NS, TIME_S, false, 0},
	};
	uint64_t ns = 0;
	for (const auto &t : kTimes) {
		INFO(t.text << " with " << t.bare);
		CHECK(parse_duration(t.text, t.units, t.bare, &ns) == t.good);
		if (t.good)
			CHECK(ns == t.ns);
	}
	for (const char *text : {"", "s", "-1", "+1", " 1", "1d", "1 s", "1s2", "1S", "1Ms", "nan", "inf",
				 "0x10", "1e300", "1e10", "1e6h"}) {
		INFO(text);
		CHECK_FALSE(parse_duration(text, TIME_ANY, TIME_S, &ns));
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

TEST_CASE("samples")
{
	uint32_t n = 0;
	CHECK((parse_sample("auto", &n) && n == 0));
	CHECK((parse_sample("1/1", &n) && n == 1));
	CHECK((parse_sample("1/16", &n) && n == 16));
	CHECK((parse_sample("1/1024", &n) && n == 1024));
	for (const char *text : {"", "16", "1/", "1/0", "1/3", "1/2048", "2/4", "1/-4", "1/4x"}) {
		INFO(text);
		CHECK_FALSE(parse_sample(text, &n));
	}
}

TEST_CASE("Sizes use powers of 1000, or of 1024 if their unit is KiB, MiB, ...")
{
	const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {{"0", 0},
		     {"4096", 4096},
		     {"12B", 12},
		     {"500kB", 500'000},
		     {"1.5GB", 1'500'000'000},
		     {"2TB", 2'000'000'000'000},
		     {"4KiB", 4096},
		     {"64MiB", 64 << 20},
		     {"256M", 256'000'000},
		     {"1k", 1000},
		     {"1gb", 1'000'000'000},
		     {"2Ki", 2048},
		     {"1TiB", uint64_t(1) << 40}};
	for (const auto &[text, wanted] : sizes) {
		INFO(text);
		uint64_t bytes = 1;
		CHECK(parse_bytes(text, &bytes));
		CHECK(bytes == wanted);
	}
	for (const char *wrong : {"", "MB", "-1", "1 GB", "1x", "1GBs", "0x10", "2000000TB", "nan"}) {
		INFO(wrong);
		uint64_t bytes;
		CHECK_FALSE(parse_bytes(wrong, &bytes));
	}
}
