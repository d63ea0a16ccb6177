// SPDX-License-Identifier: MIT
// Values: the sizes of every kind of distribution compared with the requested ones, and bytes that can be
// written and checked in pieces of any size.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"
#include "tests/support/chi_squared.h"

namespace
{

struct Values {
	values v = {};
	explicit Values(const char *sizes, double compressible = 0, uint64_t seed = 1)
	{
		char error[256] = "";
		REQUIRE(value_sizes_parse(sizes, &v.sizes, error, sizeof(error)));
		REQUIRE(values_prepare(&v, compressible, seed) == 0);
	}
	~Values() { values_free(&v); }
	Values(const Values &) = delete;
	Values &operator=(const Values &) = delete;

	std::string whole(uint64_t seed) const
	{
		std::string all(value_size(&v, seed), 0);
		value_copy(&v, seed, 0, &all[0], static_cast<uint32_t>(all.size()));
		return all;
	}
};

} // namespace

TEST_CASE("sizes as users write them")
{
	value_sizes s;
	char error[256], said[128];
	const auto describe = [&](const char *text) -> std::string {
		REQUIRE(value_sizes_parse(text, &s, error, sizeof(error)));
		value_sizes_describe(&s, said, sizeof(said));
		return said;
	};
	CHECK(describe("100") == "100-byte values");
	CHECK(describe("67108864") == "67108864-byte values");
	CHECK(describe("10-1000") == "values of 10 to 1000 bytes");
	CHECK(describe("7-7") == "values of 7 to 7 bytes");
	CHECK(describe("100:80,10000:15,5:5") == "values of 3 sizes from 5 to 10000 bytes");
	CHECK(describe("lognormal:200,1.2") == "lognormal values (median 200 bytes, sigma 1.2)");
	CHECK((s.low == 1 && s.high == 1u << 20));
	describe("lognormal:200,1.2,65536");
	CHECK(s.high == 65536);
	for (const char *bad : {"",
				"0",
				"-5",
				"67108865",
				"10-",
				"-10",
				"20-10",
				"10-20-30",
				"10:0",
				"10:1,",
				"10:1,20",
				":1",
				"lognormal:",
				"lognormal:5",
				"lognormal:5,0",
				"lognormal:0,1",
				"lognormal:5,1,0",
				"lognormal:5,11",
				"many",
				"10 "}) {
		INFO(bad);
		CHECK_FALSE(value_sizes_parse(bad, &s, error, sizeof(error)));
		CHECK(std::string(error).find("got \"" + std::string(bad) + "\"") != std::string::npos);
	}
	std::string list = "1:1";
	for (int i = 2; i <= VALUE_SIZES_MAX; i++)
		list += "," + std::to_string(i) + ":1";
	CHECK(value_sizes_parse(list.c_str(), &s, error, sizeof(error)));
	CHECK_FALSE(value_sizes_parse((list + ",99:1").c_str(), &s, error, sizeof(error)));
}

TEST_CASE("sizes follow the requested distribution")
{
	random_stream seeds = {3};
	Values fixed("77"), range("10-29"), list("5:70,50:20,500:10");
	std::vector<uint64_t> in_range(20), in_list(3);
	for (int i = 0; i < 100000; i++) {
		const uint64_t seed = random_next(&seeds);
		REQUIRE(value_size(&fixed.v, seed) == 77);
		const uint32_t of_range = value_size(&range.v, seed), of_list = value_size(&list.v, seed);
		REQUIRE((of_range >= 10 && of_range <= 29));
		in_range[of_range - 10]++;
		REQUIRE((of_list == 5 || of_list == 50 || of_list == 500));
		in_list[of_list == 5 ? 0 : of_list == 50 ? 1 : 2]++;
		// The seed determines the size.
		REQUIRE(value_size(&range.v, seed) == of_range);
	}
	CHECK(chi_squared_test(in_range, std::vector<double>(20, 0.05)).fits());
	CHECK(chi_squared_test(in_list, {0.7, 0.2, 0.1}).fits());
}

TEST_CASE("lognormal sizes have their median and spread, and are limited")
{
	Values v("lognormal:1000,0.8,20000");
	random_stream seeds = {4};
	std::vector<uint64_t> deciles(10);
	int cut = 0;
	for (int i = 0; i < 100000; i++) {
		const double size = value_size(&v.v, random_next(&seeds));
		REQUIRE((size >= 1 && size <= 20000));
		cut += size == 20000;
		// The normal distribution function maps it to a uniform distribution.
		const double u = 0.5 * std::erfc(-std::log((size + 0.5) / 1000) / 0.8 / std::sqrt(2.0));
		deciles[std::min<size_t>(static_cast<size_t>(u * 10), 9)]++;
	}
	// Sizes are whole bytes, which moves each decile's edge by at most half a byte in a few hundred.
	for (uint64_t n : deciles)
		CHECK(static_cast<double>(n) == Approx(10000).epsilon(0.05));
	CHECK(cut > 0); // 1 in 11,000 is beyond
	Values cut_below("lognormal:1,3,50");
	for (int i = 0; i < 10000; i++) {
		const uint32_t size = value_size(&cut_below.v, random_next(&seeds));
		REQUIRE((size >= 1 && size <= 50));
	}
}

TEST_CASE("a value written in pieces is the same at every cut")
{
	Values v("200");
	for (uint64_t seed : {0ull, 5ull, 0xfedcba9876543210ull, ~0ull}) {
		const std::string whole = v.whole(seed);
		char stamp[17];
		snprintf(stamp, sizeof(stamp), "%016llx", static_cast<unsigned long long>(seed));
		CHECK(whole.substr(0, 16) == stamp);
		for (char c : whole)
			REQUIRE((c >= '!' && c <= '~'));
		for (uint32_t cut = 0; cut <= whole.size(); cut++) {
			std::string pieces(whole.size(), 0);
			const auto left = static_cast<uint32_t>(whole.size()) - cut;
			value_copy(&v.v, seed, 0, &pieces[0], cut);
			value_copy(&v.v, seed, cut, &pieces[cut], left);
			REQUIRE(pieces == whole);
			REQUIRE(value_check(&v.v, seed, 0, whole.data(), cut) == -1);
			REQUIRE(value_check(&v.v, seed, cut, whole.data() + cut, left) == -1);
		}
	}
}

TEST_CASE("a wrong byte is found at its place, whatever the cut")
{
	Values v("300");
	const uint64_t seed = value_seed_of_key(123456);
	const std::string whole = v.whole(seed);
	for (uint32_t at = 0; at < whole.size(); at++) {
		std::string wrong = whole;
		wrong[at] ^= 1;
		REQUIRE(value_check(&v.v, seed, 0, wrong.data(), 300) == at);
		for (uint32_t from : {0u, at / 2, at})
			REQUIRE(value_check(&v.v, seed, from, wrong.data() + from, 300 - from) == at);
		REQUIRE(value_check(&v.v, seed, 0, wrong.data(), at) == -1);
		REQUIRE(value_check(&v.v, seed, at + 1, wrong.data() + at + 1, 299 - at) == -1);
	}
}

TEST_CASE("large values: pieces across the pool's end and beyond its length")
{
	Values v("5000000");
	const uint64_t seed = value_seed_of_key(1) | 0xffff0;
	const std::string whole = v.whole(seed);
	REQUIRE(whole.size() == 5000000);
	std::string pieces(whole.size(), 0);
	for (uint32_t at = 0; at < whole.size(); at += 99991)
		value_copy(&v.v, seed, at, &pieces[at],
			   std::min<uint32_t>(99991, static_cast<uint32_t>(whole.size()) - at));
	CHECK(pieces == whole);
	for (uint32_t at : {0u, 15u, 16u, 4095u, 4096u, 1048575u, 1048576u, 4999999u}) {
		pieces[at] ^= 2;
		CHECK(value_check(&v.v, seed, 0, pieces.data(), 5000000) == at);
		pieces[at] ^= 2;
	}
}

TEST_CASE("values of different keys differ, those of one key are the same in every run")
{
	Values a("100", 0, 1), b("100", 0, 1), other("100", 0, 2);
	for (uint64_t key = 0; key < 1000; key++) {
		const uint64_t seed = value_seed_of_key(key);
		REQUIRE(a.whole(seed) == b.whole(seed));
		REQUIRE(a.whole(seed) != a.whole(value_seed_of_key(key + 1)));
	}
	CHECK(a.whole(1) != other.whole(1));
}

TEST_CASE("the compressible share of a value is one repeated letter")
{
	random_stream seeds = {5};
	for (double share : {0.0, 0.25, 0.5, 1.0}) {
		Values v("6416", share);
		const std::string whole = v.whole(random_next(&seeds)).substr(16); // 100 runs of 64
		const auto same = static_cast<double>(std::count(whole.begin(), whole.end(), 'x'));
		// Beyond it an x is as likely as any of the 94 other characters.
		CHECK(same / 6400 == Approx(share + (1 - share) / 94).margin(0.01));
	}
}
