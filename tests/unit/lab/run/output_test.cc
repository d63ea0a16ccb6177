// SPDX-License-Identifier: MIT
// How the lab prints figures: formulas, formats, and the file that stores them.
#include <cmath>
#include <filesystem>
#include <limits>

#include "lab/pages/format.h"
#include "lab/pages/value.h"
#include "lab/scenario/formula.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"
#include "tests/unit/lab/output.h"

using namespace forktail::lab;
using namespace forktail::test;
using forktail::test::read_file;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

Point Figures(std::map<std::string, double> numbers, Values values = {})
{
	Point point;
	point.numbers = std::move(numbers);
	point.values = std::move(values);
	return point;
}

std::optional<double> Number(const std::string &formula, const Point &point, const Point *base = nullptr)
{
	Value value;
	std::string error;
	bool good = Evaluate(formula, point, base, &value, &error);
	INFO(error);
	REQUIRE(good);
	return value.number;
}

std::string Complaint(const std::string &formula)
{
	std::string error;
	REQUIRE_FALSE(CheckFormula(formula, &error));
	return error;
}

} // namespace

TEST_CASE("a formula calculates with figures, with digits and dots in their names")
{
	Point point = Figures({{"run.p99_9", 40}, {"run.bucket_25ms", 8}, {"run.a", 1}, {"run.a1", 2}});
	CHECK(Number("run.p99_9 / run.bucket_25ms", point) == 5.0);
	CHECK(Number("run.a1 * 10 + run.a", point) == 21.0);
	CHECK(Number("max(run.a, run.a1) ^ 2", point) == 4.0);
	CHECK(Number("run.a > 0 ? 1.5e3 : 2", point) == 1500.0);
	CHECK(Number("1e3*run.a", point) == 1000.0);
	CHECK(Number("2^ceil(log2(run.p99_9)) + floor(run.p99_9 / 3)", point) == 77.0);
	CHECK(Number("sqrt (run.p99_9 * 10)", point) == 20.0);
}

TEST_CASE("a name that is no figure is a variable of the point, if it is a number")
{
	Point point = Figures({{"run.rps", 100}}, {{"clients", "8"}, {"listen", "tcp"}, {"size", "8kB"}});
	CHECK(Number("run.rps / clients", point) == 12.5);
	CHECK_FALSE(Number("run.rps / listen", point));
	CHECK_FALSE(Number("size", point));
}

TEST_CASE("base. is the other point; without it, or without the figure, there is no value")
{
	Point point = Figures({{"run.rps", 100}}), base = Figures({{"run.rps", 40}}), empty;
	CHECK(Number("run.rps / base.run.rps", point, &base) == 2.5);
	CHECK_FALSE(Number("run.rps / base.run.rps", point));
	CHECK_FALSE(Number("run.rps / base.run.rps", point, &empty));
	CHECK_FALSE(Number("run.p99", point));
	// A result that is no number is no value either.
	CHECK_FALSE(Number("run.rps / (run.rps - 100)", point));
	CHECK_FALSE(Number("sqrt(0 - run.rps)", point));
}

TEST_CASE("a single figure has the range of its repeats, and a formula of several has none")
{
	Point point = Figures({{"run.rps", 100}, {"run.p99", 7}}), base = Figures({{"run.rps", 90}});
	point.repeats = base.repeats = 3;
	point.least = {{"run.rps", 95}};
	point.most = {{"run.rps", 110}};
	base.least = {{"run.rps", 80}};
	base.most = {{"run.rps", 91}};
	Value value;
	std::string error;
	REQUIRE(Evaluate("run.rps", point, &base, &value, &error));
	CHECK(value.least == 95.0);
	CHECK(value.most == 110.0);
	REQUIRE(Evaluate("base.run.rps", point, &base, &value, &error));
	CHECK(value.most == 91.0);
	REQUIRE(Evaluate("run.rps / 10", point, &base, &value, &error));
	CHECK(value.number == 10.0);
	CHECK_FALSE(value.least);
	REQUIRE(Evaluate("run.p99", point, &base, &value, &error));
	CHECK_FALSE(value.least);
}

TEST_CASE("an invalid formula is reported in one sentence, with the text as typed")
{
	std::string error;
	CHECK(CheckFormula("run.{row}.rps / base.run.{row}.rps * 100", &error));
	CHECK(Complaint("run.rps / ") == "\"run.rps / \" is not a formula: unexpected end of expression");
	CHECK(Complaint("run.rps run.p99") ==
	      "\"run.rps run.p99\" is not a formula: unexpected variable \"run.p99\"");
	CHECK(Complaint("(run.rps").find("is not a formula: ") != std::string::npos);
	CHECK(Complaint("").find("is not a formula: ") != std::string::npos);
	CHECK(Complaint("nothing(run.rps)").find("nothing") != std::string::npos);
	CHECK(Complaint("run.rps $ 2").find("$") != std::string::npos);
	Value value;
	CHECK_FALSE(Evaluate("run.rps *", Point(), nullptr, &value, &error));
}

TEST_CASE("the names in a formula are listed once each, as written")
{
	CHECK(NamesIn("run.{row}.rps / base.run.{row}.rps + min(a, 2e6, a)") ==
	      std::vector<std::string>{"run.{row}.rps", "base.run.{row}.rps", "a"});
	CHECK(NamesIn("run.worst") == std::vector<std::string>{"run.worst"});
	CHECK(NamesIn("1 + 2").empty());
}

TEST_CASE("{row} is replaced by the row's name in figures")
{
	CHECK(WithRow("run.{row}.rps / {row}", "READ-MODIFY-WRITE") ==
	      "run.READ_MODIFY_WRITE.rps / READ_MODIFY_WRITE");
	CHECK(FigureName("p99.9") == "p99_9");
	CHECK(FigureName("a b\xc3\xa4") == "a_b__");
}

TEST_CASE("figures are printed in the unit of their column")
{
	CHECK(FormatFigure(1234567.4, Format::kCount) == "1,234,567");
	CHECK(FormatFigure(-1234, Format::kCount) == "-1,234");
	CHECK(FormatFigure(-0.2, Format::kCount) == "0");
	CHECK(FormatFigure(999, Format::kCount) == "999");
	CHECK(FormatFigure(1234.56, Format::kDecimals1) == "1,234.6");
	CHECK(FormatFigure(0.996, Format::kDecimals2) == "1.00");
	CHECK(FormatFigure(61.44, Format::kPercent) == "61.4");
	CHECK(FormatFigure(187.3, Format::kPercent) == "187");
	CHECK(FormatFigure(12345678, Format::kMs) == "12.3");
	CHECK(FormatFigure(812, Format::kMs) == "0.001");
	CHECK(FormatFigure(9996000, Format::kMs) == "10.0");
	CHECK(FormatFigure(373975000, Format::kUs) == "373,975");
	CHECK(FormatFigure(1.5e9, Format::kSeconds) == "1.50");
	CHECK(FormatFigure(84e6, Format::kBytes) == "84.0 MB");
	CHECK(FormatFigure(-2048, Format::kBytes) == "-2.05 kB");
	CHECK(FormatFigure(0.012345, Format::kNumber) == "0.01235");
	CHECK(FormatFigure(1204311, Format::kNumber) == "1,204,311");
	CHECK(FormatFigure(2.5, Format::kNumber) == "2.5");
	CHECK(FormatFigure(0, Format::kNumber) == "0");
}

TEST_CASE("published figures keep their digits")
{
	CHECK(FormatPublished(184928, Format::kCount) == "184,928");
	CHECK(FormatPublished(901.78, Format::kMs) == "901.78");
	CHECK(FormatPublished(74, Format::kDecimals1) == "74");
	CHECK(FormatPublished(901780000, Format::kBytes) == "902 MB");
}

TEST_CASE("a unit is named once")
{
	CHECK(WithUnit("average", Format::kMs) == "average, ms");
	CHECK(WithUnit("average (ms)", Format::kMs) == "average (ms)");
	CHECK(WithUnit("items", Format::kMs) == "items, ms");
	CHECK(WithUnit("CPU %", Format::kPercent) == "CPU %");
	CHECK(WithUnit("requests/s", Format::kCount) == "requests/s");
}

TEST_CASE("results are read back from their file unchanged")
{
	TempDir dir;
	std::string path = dir.file("results.json"), error;
	Results written = SampleResults(), read;
	written.points[0].repeats = 3;
	written.points[0].least = {{"run.SET.rps", 7000}};
	written.points[0].most = {{"run.SET.rps", 9000}};
	written.points[1].numbers["run.broken"] = std::nan("");
	written.points[1].numbers["run.endless"] = std::numeric_limits<double>::infinity();
	written.points[2].numbers["run.exact"] = 0.1 + 0.2;
	written.points[3].texts["run.worst"] = "not UTF-8: \xff, \"quoted\"\nand a line";
	REQUIRE(WriteResults(path, written, &error));
	INFO(error);
	REQUIRE(ReadResults(path, &read, &error));
	CHECK(read.scenario == written.scenario);
	CHECK(read.title == written.title);
	CHECK(read.host == written.host);
	CHECK(read.kernel == written.kernel);
	CHECK(read.cpu == written.cpu);
	CHECK(read.versions == written.versions);
	CHECK(read.scale == written.scale);
	CHECK(read.command == written.command);
	CHECK(read.seconds == written.seconds);
	CHECK(read.started_unix == written.started_unix);
	CHECK(read.notes == written.notes);
	REQUIRE(read.points.size() == 4);
	CHECK(read.points[0].values == written.points[0].values);
	CHECK(read.points[0].least == written.points[0].least);
	CHECK(read.points[0].most == written.points[0].most);
	CHECK(read.points[0].repeats == 3);
	CHECK(read.points[0].recorded == written.points[0].recorded);
	CHECK(read.points[1].numbers.count("run.broken") == 0);
	CHECK(read.points[1].numbers.count("run.endless") == 0);
	CHECK(read.points[2].numbers == written.points[2].numbers);
	CHECK(read.points[3].texts["run.worst"].find("\"quoted\"\nand a line") != std::string::npos);
	// The write leaves no temporary file, and a second write replaces the first.
	CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
	REQUIRE(WriteResults(path, Results(), &error));
	REQUIRE(ReadResults(path, &read, &error));
	CHECK(read.points.empty());
}

TEST_CASE("unreadable results are refused in one sentence, and the file stays")
{
	TempDir dir;
	std::string path = dir.file("results.json"), error;
	REQUIRE(WriteResults(path, SampleResults(), &error));
	std::string whole = read_file(path);
	Results read = SampleResults();
	for (size_t length = 0; length + 2 < whole.size(); length += 37) {
		write_file(path, whole.substr(0, length));
		REQUIRE_FALSE(ReadResults(path, &read, &error));
		CHECK(error.rfind(path + " is damaged", 0) == 0);
		CHECK(error.find('\n') == std::string::npos);
	}
	auto refused = [&](const std::string &from, const std::string &to) {
		std::string changed = whole;
		changed.replace(changed.find(from), from.size(), to);
		write_file(path, changed);
		REQUIRE_FALSE(ReadResults(path, &read, &error));
		return error;
	};
	CHECK(refused("\"version\": 1", "\"version\": 2").find("another version") != std::string::npos);
	CHECK(refused("\"host\"", "\"guest\"").find("'host' not found") != std::string::npos);
	CHECK(refused("\"seconds\": 12.5", "\"seconds\": \"12\"").find("must be number") !=
	      std::string::npos);
	CHECK(read.points.size() == 4);
	CHECK_FALSE(ReadResults(dir.file("none.json"), &read, &error));
	CHECK(error.find("No such file") != std::string::npos);
	CHECK_FALSE(WriteResults(dir.file("none/results.json"), read, &error));
	CHECK(error.find("No such file") != std::string::npos);
}
