// SPDX-License-Identifier: MIT
// The curve of a search: medians of runs at the same rate, computed by hand, in each form of output.
#include <cstdlib>
#include <string>
#include <vector>

#include "loadgen/output.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/text.h"

using forktail::test::printed;

namespace
{

curve_run at(double rate, double p99_ms, double busiest, bool held)
{
	curve_run run = {};
	run.rate = rate;
	run.figures.rps = rate;
	run.figures.mean_ns = run.figures.p50_ns = 1e5;
	run.figures.p99_ns = p99_ms * 1e6;
	run.figures.p999_ns = -1; // not among --percentiles
	run.figures.max_ns = 2 * p99_ms * 1e6;
	run.figures.requests = 100;
	run.figures.errors = 1;
	run.busiest = busiest;
	run.held = held;
	return run;
}

// Three runs at 2000/s, one at 1000/s, two at 3000/s.
const std::vector<curve_run> kRuns = {at(2000, 1.5, 0.2, true), at(1000, 0.5, 0.1, true),
				      at(2000, 0.7, 0.4, true), at(3000, 9, 0.9, false),
				      at(2000, 40, 0.3, false), at(3000, 11, 0.8, false)};

TEST_CASE("a rate has the medians of its runs, and rates ascend")
{
	curve c;
	curve_make(&c, kRuns.data(), static_cast<uint32_t>(kRuns.size()), 2000);
	REQUIRE(c.count == 3);
	CHECK(c.points[0].rate == 1000);
	CHECK(c.points[1].rate == 2000);
	CHECK(c.points[1].runs == 3);
	CHECK(c.points[1].held == 2);
	CHECK(c.points[1].figures.p99_ns == 1.5e6);
	CHECK(c.points[1].figures.max_ns == 3e6);
	CHECK(c.points[1].figures.requests == 300);
	CHECK(c.points[1].figures.errors == 3);
	CHECK(c.points[1].busiest == 0.3);
	CHECK(c.points[2].figures.p99_ns == 9e6); // of two, the lower
	curve_make(&c, kRuns.data(), 0, 0);
	CHECK(c.count == 0);
}

TEST_CASE("table, CSV and JSON have a row per rate")
{
	curve c;
	curve_make(&c, kRuns.data(), static_cast<uint32_t>(kRuns.size()), 2000);
	const std::string table = printed([&](FILE *to) { curve_table(to, &c); });
	CHECK(table.find(
		  "        2000        2000      0.100      1.500          -      3.000     30 %          "
		  "3  2 of 3  <- highest\n") != std::string::npos);
	CHECK(table.find("   client     errors  held\n") != std::string::npos);
	CHECK(table.find("0 of 2\n") != std::string::npos);
	std::vector<curve_run> good = kRuns;
	for (curve_run &run : good)
		run.figures.errors = 0;
	curve without;
	curve_make(&without, good.data(), static_cast<uint32_t>(good.size()), 2000);
	const std::string narrow = printed([&](FILE *to) { curve_table(to, &without); });
	CHECK(narrow.find("   client  held\n") != std::string::npos);
	CHECK(narrow.find("     30 %  2 of 3  <- highest\n") != std::string::npos);
	const std::string csv = printed([&](FILE *to) { curve_csv(to, &c); });
	CHECK(csv.find("\n2000,2000.0,0.100000,0.100000,1.500000,,3.000000,3,0.3000,3,2\n") !=
	      std::string::npos);
	json_t *rows = json_array();
	curve_json(rows, &c);
	char *text = json_line(rows);
	const nlohmann::json j = forktail::test::parse_json(text);
	free(text);
	REQUIRE(j.size() == 3);
	CHECK(j[1].at("p99_ns") == 1.5e6);
	CHECK(!j[1].contains("p99.9_ns"));
	CHECK(j[1].at("held") == 2);
	CHECK(j[2].at("client_busy") == 0.8);
}

} // namespace
