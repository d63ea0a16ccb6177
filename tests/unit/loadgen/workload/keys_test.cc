// SPDX-License-Identifier: MIT
// Key patterns: drawn keys compared with the exact probabilities, the ends of the key space, and the parsing.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"
#include "tests/support/chi_squared.h"

namespace
{

key_distribution parsed(const std::string &text)
{
	key_distribution d;
	char error[256] = "";
	INFO(text);
	const bool ok = key_distribution_parse(text.c_str(), &d, error, sizeof(error));
	INFO(error);
	REQUIRE(ok);
	return d;
}

key_drawer drawer(const std::string &text)
{
	const key_distribution distribution = parsed(text);
	key_drawer d;
	key_drawer_init(&d, &distribution);
	return d;
}

std::vector<uint64_t> counts(const std::string &text, uint64_t items, uint64_t draws, uint64_t seed = 1)
{
	key_drawer d = drawer(text);
	random_stream r = random_begin(seed, 0, 1);
	std::vector<uint64_t> result(items);
	for (uint64_t i = 0; i < draws; i++)
		result.at(key_draw(&d, &r, items))++;
	return result;
}

std::vector<double> zipf(double exponent, uint64_t items)
{
	std::vector<double> p(items);
	double sum = 0;
	for (uint64_t i = items; i-- > 0;)
		sum += p[i] = std::pow(static_cast<double>(i + 1), -exponent);
	for (double &value : p)
		value /= sum;
	return p;
}

double normal_below(double z)
{
	return std::erfc(-z / std::sqrt(2.0)) / 2;
}

} // namespace

TEST_CASE("zipf keys have their exact frequencies, whatever the exponent")
{
	for (const char *exponent : {"0.01", "0.5", "0.99", "1", "1.0000001", "1.5", "3", "20"})
		for (uint64_t items : {1, 2, 3, 10, 1000}) {
			const auto seen = counts(std::string("zipf:") + exponent, items, 300000);
			const auto chi = chi_squared_test(seen, zipf(std::stod(exponent), items));
			INFO("exponent " << exponent << ", " << items << " items: " << chi.statistic
					 << " above " << chi.limit);
			CHECK(chi.fits());
		}
	// The test detects a slightly different exponent.
	CHECK_FALSE(chi_squared_test(counts("zipf:0.99", 1000, 300000), zipf(1.02, 1000)).fits());
	CHECK(chi_squared_test(counts("zipf", 1000, 300000), zipf(0.99, 1000)).fits());
}

TEST_CASE("zipf over a key space too large for a table")
{
	// Sum of k^-e for k up to n: exact for the first million, Euler and Maclaurin's formula beyond.
	const auto harmonic = [](double n, double e) {
		const double exact = std::min(n, 1e6);
		double sum = 0;
		for (double k = exact; k >= 1; k--)
			sum += std::pow(k, -e);
		if (n > exact)
			sum += (e == 1 ? std::log(n / exact)
				       : (std::pow(n, 1 - e) - std::pow(exact, 1 - e)) / (1 - e)) +
			       (std::pow(n, -e) - std::pow(exact, -e)) / 2;
		return sum;
	};
	for (const char *exponent : {"0.5", "0.99", "1", "1.5"}) {
		const double e = std::stod(exponent);
		const uint64_t items = 1000000000000;
		key_drawer d = drawer(std::string("zipf:") + exponent);
		random_stream r = random_begin(3, 0, 1);
		std::vector<uint64_t> seen(13); // by decades: key 0, 1-9, 10-99 ...
		std::vector<double> p;
		for (int i = 0; i < 300000; i++) {
			const uint64_t key = key_draw(&d, &r, items);
			REQUIRE(key < items);
			size_t decade = 0;
			for (uint64_t limit = 1; key >= limit; limit *= 10)
				decade++;
			seen.at(decade)++;
		}
		const double all = harmonic(1e12, e);
		double below = 0;
		for (int decade = 0; decade <= 12; decade++) {
			const double now = harmonic(std::pow(10.0, decade), e);
			p.push_back((now - below) / all);
			below = now;
		}
		const auto chi = chi_squared_test(seen, p);
		INFO("exponent " << exponent << ": " << chi.statistic << " above " << chi.limit);
		CHECK(chi.fits());
	}
}

TEST_CASE("a key space that changes between draws gives each size its own frequencies")
{
	key_drawer d = drawer("zipf:1.2");
	random_stream r = random_begin(1, 0, 1);
	std::vector<uint64_t> few(5), many(500);
	for (int i = 0; i < 300000; i++) {
		few.at(key_draw(&d, &r, few.size()))++;
		many.at(key_draw(&d, &r, many.size()))++;
	}
	CHECK(chi_squared_test(few, zipf(1.2, few.size())).fits());
	CHECK(chi_squared_test(many, zipf(1.2, many.size())).fits());
	for (const char *text :
	     {"uniform", "sequential", "zipf", "zipf-scattered", "gaussian", "latest", "hot:90:10"}) {
		key_drawer growing = drawer(text);
		for (uint64_t items = 1; items < 20000; items++)
			if (key_draw(&growing, &r, items) >= items)
				FAIL(text << " is beyond " << items);
	}
}

TEST_CASE("latest is zipf from the other end")
{
	key_drawer zipf_keys = drawer("zipf:0.8"), latest = drawer("latest:0.8");
	random_stream a = random_begin(1, 0, 1), b = a;
	for (uint64_t items = 1; items < 20000; items++)
		REQUIRE(key_draw(&latest, &b, items) == items - 1 - key_draw(&zipf_keys, &a, items));
}

TEST_CASE("scattering moves each key to a unique place, and neighbours apart")
{
	for (uint64_t items : {1, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 4096, 65537}) {
		std::vector<bool> taken(items);
		for (uint64_t rank = 0; rank < items; rank++) {
			const uint64_t key = key_scatter(rank, items);
			REQUIRE(key < items);
			REQUIRE_FALSE(taken[key]);
			taken[key] = true;
		}
	}
	std::vector<uint64_t> popular;
	for (uint64_t rank = 0; rank < 100; rank++)
		popular.push_back(key_scatter(rank, 1000000));
	std::sort(popular.begin(), popular.end());
	CHECK(popular.front() < 100000);
	CHECK(popular.back() > 900000);
	CHECK(std::adjacent_find(popular.begin(), popular.end(),
				 [](uint64_t x, uint64_t y) { return y - x < 2; }) == popular.end());

	const auto seen = counts("zipf-scattered:1.2", 1000, 300000);
	std::vector<double> p(1000);
	for (uint64_t rank = 0; rank < 1000; rank++)
		p[key_scatter(rank, 1000)] = zipf(1.2, 1000)[rank];
	CHECK(chi_squared_test(seen, p).fits());
}

TEST_CASE("gaussian keys have their mean, deviation and shape")
{
	for (const char *text : {"gaussian", "gaussian:0.1", "gaussian:0.01", "gaussian:1"}) {
		const double deviation = parsed(text).deviation, draws = 1000000;
		const uint64_t items = 100000;
		const auto seen = counts(text, items, static_cast<uint64_t>(draws));
		double sum = 0, squares = 0;
		for (uint64_t key = 0; key < items; key++) {
			const double x = (static_cast<double>(key) + 0.5) / static_cast<double>(items);
			sum += x * static_cast<double>(seen[key]);
			squares += x * x * static_cast<double>(seen[key]);
		}
		// A normal distribution cut off at deviation a on both sides has this much less variance.
		const double a = 0.5 / deviation;
		const double inside = 1 - 2 * normal_below(-a);
		const double density = std::exp(-a * a / 2) / std::sqrt(2 * M_PI);
		const double expected = deviation * std::sqrt(1 - 2 * a * density / inside);
		const double mean = sum / draws;
		INFO(text);
		CHECK(mean == Approx(0.5).margin(4 * expected / std::sqrt(draws)));
		CHECK(std::sqrt(squares / draws - mean * mean) ==
		      Approx(expected).epsilon(4 / std::sqrt(2 * draws)));

		std::vector<uint64_t> cells(50);
		std::vector<double> p;
		for (uint64_t key = 0; key < items; key++)
			cells[key * 50 / items] += seen[key];
		for (int i = 0; i < 50; i++)
			p.push_back((normal_below((i + 1 - 25) / 50.0 / deviation) -
				     normal_below((i - 25) / 50.0 / deviation)) /
				    inside);
		CHECK(chi_squared_test(cells, p).fits());
	}
}

TEST_CASE("hot keys get their share, evenly within each part")
{
	for (const auto &[requests, keys] :
	     {std::pair{90.0, 10.0}, {99.9, 0.5}, {50, 50}, {100, 20}, {10, 100}}) {
		const uint64_t items = 200;
		std::string text = "hot:" + std::to_string(requests) + ":" + std::to_string(keys);
		const double hot = std::round(keys / 100 * static_cast<double>(items));
		std::vector<double> p;
		for (uint64_t key = 0; key < items; key++)
			p.push_back(hot == 200			     ? 1.0 / 200
				    : static_cast<double>(key) < hot ? requests / 100 / hot
								     : (1 - requests / 100) / (200 - hot));
		INFO(text);
		CHECK(chi_squared_test(counts(text, items, 500000), p).fits());
	}
	// At least one key is hot, however small the key space.
	const auto seen = counts("hot:90:10", 3, 100000);
	CHECK(chi_squared_test(seen, {0.9, 0.05, 0.05}).fits());
}

TEST_CASE("uniform and sequential keys")
{
	CHECK(chi_squared_test(counts("uniform", 1000, 500000), std::vector<double>(1000, 0.001)).fits());
	CHECK(counts("sequential", 10, 25) == std::vector<uint64_t>{3, 3, 3, 3, 3, 2, 2, 2, 2, 2});
	key_drawer d = drawer("sequential");
	random_stream r = random_begin(1, 0, 1);
	d.next = 7;
	std::vector<uint64_t> keys;
	for (int i = 0; i < 5; i++)
		keys.push_back(key_draw(&d, &r, 10));
	CHECK(keys == std::vector<uint64_t>{7, 8, 9, 0, 1});
}

TEST_CASE("one key, and a trillion")
{
	for (const char *text : {"uniform", "sequential", "zipf", "zipf:1000", "zipf:0.001", "zipf-scattered",
				 "gaussian", "latest:3", "hot:50:50"}) {
		key_drawer d = drawer(text);
		random_stream r = random_begin(1, 0, 1);
		const uint64_t items = 1000000000000;
		INFO(text);
		for (int i = 0; i < 1000; i++) {
			REQUIRE(key_draw(&d, &r, 1) == 0);
			REQUIRE(key_draw(&d, &r, items) < items);
		}
	}
}

TEST_CASE("key patterns as users write them")
{
	CHECK(parsed("uniform").pattern == KEYS_UNIFORM);
	CHECK(parsed("sequential").pattern == KEYS_SEQUENTIAL);
	CHECK((parsed("zipf").pattern == KEYS_ZIPF && parsed("zipf").exponent == 0.99 &&
	       !parsed("zipf").scattered));
	CHECK((parsed("zipf:1.2").exponent == 1.2 && parsed("zipf:1000").exponent == 1000));
	CHECK((parsed("zipf-scattered:2").scattered && parsed("zipf-scattered:2").exponent == 2));
	CHECK((parsed("gaussian").pattern == KEYS_GAUSSIAN && parsed("gaussian").deviation == 1.0 / 6));
	CHECK(parsed("gaussian:0.1").deviation == 0.1);
	CHECK((parsed("latest:0.8").pattern == KEYS_LATEST && parsed("latest:0.8").exponent == 0.8));
	const key_distribution hot = parsed("hot:90:10");
	CHECK((hot.pattern == KEYS_HOT && hot.hot_requests == 0.9 && hot.hot_keys == 0.1));

	const std::pair<const char *, const char *> errors[] = {
	    {"", "is not a key pattern"},
	    {":", "is not a key pattern"},
	    {"zip", "is not a key pattern"},
	    {"zipff", "is not a key pattern"},
	    {"Zipf", "is not a key pattern"},
	    {"uniform:1", "takes no number"},
	    {"uniform:", "takes no number"},
	    {"sequential:5", "takes no number"},
	    {"zipf:", "above 0 and at most 1000"},
	    {"zipf:0", "above 0 and at most 1000"},
	    {"zipf:-1", "above 0 and at most 1000"},
	    {"zipf:1001", "above 0 and at most 1000"},
	    {"zipf:1:2", "above 0 and at most 1000"},
	    {"zipf-scattered:nan", "above 0 and at most 1000"},
	    {"latest:x", "above 0 and at most 1000"},
	    {"gaussian:0", "share of the key space and must be above 0 and at most 1"},
	    {"gaussian:1.1", "share of the key space and must be above 0 and at most 1"},
	    {"gaussian:", "share of the key space and must be above 0 and at most 1"},
	    {"hot", "a percentage of requests"},
	    {"hot:", "a percentage of requests"},
	    {"hot:90", "a percentage of requests"},
	    {"hot:90:", "a percentage of requests"},
	    {"hot::10", "a percentage of requests"},
	    {"hot:0:10", "a percentage of requests"},
	    {"hot:90:0", "a percentage of requests"},
	    {"hot:101:10", "a percentage of requests"},
	    {"hot:90:101", "a percentage of requests"},
	    {"hot:90:10:1", "a percentage of requests"},
	    {"hot:0000000000000000000000000000000000000090:10", "a percentage of requests"},
	};
	for (const auto &[text, reason] : errors) {
		key_distribution d;
		char error[256] = "";
		INFO(text);
		CHECK_FALSE(key_distribution_parse(text, &d, error, sizeof(error)));
		INFO(error);
		CHECK(std::string(error).find(reason) != std::string::npos);
		CHECK(std::string(error).find('"' + std::string(text) + '"') != std::string::npos);
	}
}
