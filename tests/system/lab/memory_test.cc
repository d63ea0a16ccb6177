// SPDX-License-Identifier: MIT
// The memory of sets and values, from the scenarios that measure it: INFO memory equals the known sizes in
// Redis and its allocator, to the byte per key.
#include <cmath>

#include "lab/pages/tables.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using namespace forktail::lab;

TEST_CASE("memory by INFO and the sum of known sizes differ by less than a byte per key")
{
	const std::string name = GENERATE(as<std::string>{}, "a2-set-memory", "d2-value-memory");
	TempDir dir;
	const std::string out = dir.file("run");
	const Result r =
	    run({program("forktail"), "lab", "run", name, "--scale", "tiny", "--out", out}, Seconds(120));
	INFO(r.out << r.err);
	REQUIRE(r.status == 0);
	Scenario scenario;
	Results results;
	std::string error;
	std::vector<MadeTable> tables;
	REQUIRE(ReadScenario(std::string(FORKTAIL_SOURCE_DIR) + "/lab/scenarios/" + name + ".toml", &scenario,
			     &error));
	REQUIRE(ReadResults(out + "/results.json", &results, &error));
	REQUIRE(MakeTables(scenario, results, &tables, &error));
	size_t column = 0;
	while (column < tables[0].heads.size() && tables[0].heads[column].title != "difference")
		column++;
	REQUIRE(column < tables[0].heads.size());
	REQUIRE(tables[0].rows.size() == results.points.size());
	for (const auto &row : tables[0].rows) {
		REQUIRE(row[column].value);
		CHECK(std::fabs(*row[column].value) < 1);
	}
}
