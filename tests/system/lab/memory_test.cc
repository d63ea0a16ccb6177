// SPDX-License-Identifier: MIT
// The memory of sets and values, from the scenarios that measure it: INFO memory equals the known sizes in
// Redis and its allocator, to the byte per key.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
namespace fs = std::filesystem;

namespace
{

// No field of these tables has a comma or a quote.
std::vector<std::string> FieldsOf(const std::string &line)
{
	std::vector<std::string> fields;
	std::istringstream in(line);
	for (std::string field; std::getline(in, field, ',');)
		fields.push_back(field);
	return fields;
}

} // namespace

TEST_CASE("memory by INFO and the sum of known sizes differ by less than a byte per key")
{
	const std::string name = GENERATE(as<std::string>{}, "a2-set-memory", "d2-value-memory");
	TempDir dir;
	const std::string out = dir.file("run");
	const Result r =
	    run({program("forktail"), "lab", "run", name, "--scale", "tiny", "--out", out}, Seconds(120));
	INFO(r.out << r.err);
	REQUIRE(r.status == 0);
	std::istringstream table(read_file(out + "/table-1.csv"));
	std::string line;
	std::getline(table, line);
	const std::vector<std::string> titles = FieldsOf(line);
	const auto column = std::find(titles.begin(), titles.end(), "difference") - titles.begin();
	REQUIRE(static_cast<size_t>(column) < titles.size());
	long rows = 0;
	for (; std::getline(table, line); rows++) {
		INFO(line);
		REQUIRE(FieldsOf(line + ",").size() == titles.size());
		CHECK(std::fabs(std::stod(FieldsOf(line)[column])) < 1); // stod throws without a value
	}
	CHECK(rows > 0);
	CHECK(rows == std::distance(fs::directory_iterator(out + "/points"), {}));
}
