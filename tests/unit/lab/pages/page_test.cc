// SPDX-License-Identifier: MIT
// The documents about a run: its page, its section in Markdown, and a comparison with another run.
#include "lab/pages/page.h"

#include <filesystem>

#include "lab/pages/compare.h"
#include "lab/pages/document.h"
#include "lab/run/files.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"
#include "tests/unit/lab/output.h"

using namespace forktail::lab;
using namespace forktail::test;
using forktail::test::read_file;
using forktail::test::TempDir;

namespace
{

Scenario WithTable()
{
	Scenario scenario = SampleScenario();
	scenario.about = "What `redis-benchmark` does.\n\nA second paragraph.";
	scenario.report = "A3";
	scenario.source = "Redis 3.2.3, E5-2620 v3";
	scenario.question = "Why?";
	Table table;
	table.title = "By connections";
	table.note = "A note.";
	table.by = {"clients", "listen"};
	table.columns = {MakeColumn("SET/s", "run.SET.rps"),
			 MakeColumn("p99.9", "run.SET.p99_9", Format::kUs),
			 MakeColumn("causes", "run.causes", Format::kText)};
	table.columns[0].published = {{"20/unix", 184928}};
	scenario.tables = {table};
	return scenario;
}

Output Make(const Scenario &scenario, const Results &results)
{
	Output output;
	std::string error;
	bool good = MakeTables(scenario, results, &output.tables, &error);
	INFO(error);
	REQUIRE(good);
	output.charts = {
	    {"A chart", "<?xml version=\"1.0\"?>\n<svg role=\"img\"><title>A chart</title></svg>\n"}};
	return output;
}

std::string Comparison(const Results &first, const Results &second, const Scenario &scenario = WithTable())
{
	std::string text, error;
	bool good = CompareResults(scenario, first, second, 120, &text, &error);
	INFO(error);
	REQUIRE(good);
	return text;
}

void Repeat(Results *results, double spread)
{
	for (Point &point : results->points) {
		point.repeats = 3;
		for (const auto &[name, value] : point.numbers) {
			point.least[name] = value * (1 - spread);
			point.most[name] = value * (1 + spread);
		}
	}
}

} // namespace

TEST_CASE("a page has the settings, the machine and the results")
{
	Scenario scenario = WithTable();
	Results results = SampleResults();
	Output output = Make(scenario, results);
	output.note = "no charts: why not";
	std::string page = PageOf(scenario, results, output, "/nowhere");
	for (const char *part :
	     {"<title>A sample</title>", "<p class=\"prose\">What <code>redis-benchmark</code> does.</p>",
	      "<p class=\"prose\">A second paragraph.</p>", "Why?", "Some CPU", "6.1.0",
	      "forktail 0.1.0, redis 7.0.15", "2023-11-14 22:13 UTC", "12.5 s",
	      "<code>forktail lab run sample --scale small</code>",
	      "<li>no zram here: the module is missing</li>", "<li>no charts: why not</li>",
	      "report A3, Redis 3.2.3, E5-2620 v3", "<td class=\"number published\">184,928</td>", "A note.",
	      "<figure><svg role=\"img\">", "<b>connections: 20; listen: tcp</b>fork 61 %, run queue 20 %",
	      "<p>the fork held the server for 58.9 ms</p>\n<ul class=\"evidence\">\n<li>it copied page "
	      "tables</li>\n"
	      "</ul>\n<p>another</p>"})
		CHECK(contains(page, part));
	CHECK_FALSE(contains(page, "<?xml"));
	CHECK_FALSE(contains(page, "<script"));
	CHECK_FALSE(contains(page, "href=\"point"));
}

TEST_CASE("a page links to the existing pages of its recordings")
{
	TempDir dir;
	Scenario scenario = WithTable();
	Results results = SampleResults();
	results.points[1].recorded = {"a \"b\"/run"};
	std::string error;
	for (const char *run : {"point-8-unix", "a \"b\"/run"}) {
		std::filesystem::create_directories(dir.file(run));
		REQUIRE(ReplaceFile(dir.file(run) + "/report.html", "a page", &error));
	}
	std::string page = PageOf(scenario, results, Make(scenario, results), dir.path());
	CHECK(contains(page, "<a href=\"point-8-unix/report.html\">"));
	CHECK(contains(page, "<a href=\"a%20%22b%22/run/report.html\">"));
	CHECK_FALSE(contains(page, "<a href=\"point-20"));
}

TEST_CASE("a point's recorded steps have a section each, as far as they ran")
{
	Scenario scenario = WithTable();
	Results results = SampleResults();
	StepSpec traced = scenario.steps[0];
	traced.name = "traced";
	traced.only = {{"clients", {"20"}}};
	scenario.steps.insert(scenario.steps.begin(), traced);
	results.points[2].recorded = {"20-unix/traced", "20-unix/run"}; // 20, unix
	results.points[2].texts["traced.causes"] = "swap 99 %";
	results.points[0].texts.clear();
	results.points[0].recorded.clear();
	std::string page = PageOf(scenario, results, Make(scenario, results), "/nowhere");
	CHECK(contains(page, "<b>connections: 20; listen: unix; traced</b>swap 99 %"));
	CHECK(contains(page, "<b>connections: 20; listen: unix; run</b>fork 61 %"));
	CHECK(contains(page, "<b>connections: 8; listen: tcp; run</b>"));
	CHECK_FALSE(contains(page, "<b>connections: 8; listen: tcp; traced</b>"));
	CHECK_FALSE(contains(page, "<b>connections: 8; listen: unix"));
}

TEST_CASE("texts of scenarios and servers cannot be markup on a page")
{
	const std::string evil = "<script>alert(1)</script>\"'&\x1b[2J\xff\xe2\x80\xae";
	Scenario scenario = WithTable();
	Results results = SampleResults();
	scenario.title = scenario.about = scenario.question = scenario.source = evil;
	scenario.tables[0].title = scenario.tables[0].note = scenario.tables[0].columns[0].title = evil;
	scenario.sweeps[0].title = evil;
	results.host = results.cpu = results.command = evil;
	results.notes = {evil};
	results.versions = {{evil, evil}};
	for (Point &point : results.points)
		point.texts = {{"run.causes", evil}, {"run.worst", evil}};
	std::string page = PageOf(scenario, results, Make(scenario, results), "/nowhere");
	CHECK_FALSE(contains(page, "<script"));
	CHECK(contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\x1b[2J\\xff\\u202e"));
	CHECK_FALSE(contains(IndexOf({{evil, evil, evil, 1, evil}}, results), "<script"));
}

TEST_CASE("an index lists scenarios with their state, and links those that have a page")
{
	std::string page = IndexOf(
	    {{"a3", "The suite", "done", 125, "a3/report.html"}, {"c", "Memory", "failed: no swap", 0, ""}},
	    SampleResults());
	CHECK(contains(
	    page, "<th scope=\"row\"><a href=\"a3/report.html\">a3</a></th><td>The suite</td><td>done</td>"
		  "<td class=\"number\">2 min 5 s</td>"));
	CHECK(contains(
	    page,
	    "<th scope=\"row\">c</th><td>Memory</td><td>failed: no swap</td><td class=\"number\"></td>"));
	CHECK(contains(page, "Some CPU"));
	// Values of one run only.
	CHECK_FALSE(contains(page, "12.5 s"));
	CHECK_FALSE(contains(page, "no zram here"));
}

TEST_CASE("a run's section in Markdown has its tables, charts, worst moments and notes")
{
	Scenario scenario = WithTable();
	Results results = SampleResults();
	Output output = Make(scenario, results);
	std::string text = MarkdownOf(scenario, results, output, "experiments");
	for (const char *part :
	     {"## A sample\n\nWhat `redis-benchmark` does.\n\nA second paragraph.\n",
	      "**Open question:** Why?\n", "; command `forktail lab run sample --scale small`.\n",
	      "*published*: report A3, Redis 3.2.3, E5-2620 v3\n",
	      "### By connections\n\n| connections | listen | SET/s | *published* | p99.9, us | causes |\n",
	      "| 20 | unix | 20,000 | 184,928 | 24,680 | fork 61 %, run queue 20 % |\n", "\nA note.\n",
	      "![A chart](experiments/sample-1.svg)\n",
	      "- **connections: 8; listen: tcp**: fork 61 %, run queue 20 %\n"
	      "  - worst: the fork held the server for 58.9 ms\n"
	      "  - it copied page tables\n"
	      "- **connections: 20",
	      "Notes:\n\n- no zram here: the module is missing\n"})
		CHECK(contains(text, part));
	CHECK(text.back() == '\n');

	TempDir dir;
	std::string error;
	REQUIRE(WriteCharts(dir.path(), "sample", output, &error));
	CHECK(read_file(dir.file("sample-1.svg")) == output.charts[0].svg);
	CHECK_FALSE(WriteCharts(dir.file("none"), "sample", output, &error));
}

TEST_CASE("a short section in a document holds the main table's published columns, and a chart where asked")
{
	Scenario scenario = WithTable();
	Results results = SampleResults();
	Output output = Make(scenario, results);
	TempDir dir;
	std::string document = dir.file("page.md"), error;
	REQUIRE(ReplaceFile(
	    document, "Before.\n<!-- lab:sample short -->\nold\n<!-- /lab:sample -->\nAfter.\n", &error));
	REQUIRE(WriteSection(document, scenario, results, output, &error));
	CHECK(read_file(document) == "Before.\n<!-- lab:sample short -->\n"
				     "*published*: report A3, Redis 3.2.3, E5-2620 v3.\n"
				     "*here*: Some CPU; kernel 6.1.0; forktail 0.1.0, redis 7.0.15; scale "
				     "small; 2023-11-14 22:13 UTC.\n\n"
				     "| connections | listen | SET/s | *published* | causes |\n"
				     "| ---: | --- | ---: | ---: | --- |\n"
				     "| 8 | unix | 8,000 | - | fork 61 %, run queue 20 % |\n"
				     "| 8 | tcp | 4,000 | - | fork 61 %, run queue 20 % |\n"
				     "| 20 | unix | 20,000 | 184,928 | fork 61 %, run queue 20 % |\n"
				     "| 20 | tcp | 10,000 | - | fork 61 %, run queue 20 % |\n"
				     "<!-- /lab:sample -->\nAfter.\n");
	CHECK(read_file(dir.file("page/sample-1.svg")).empty());

	REQUIRE(ReplaceFile(document, "<!-- lab:sample short chart -->\n<!-- /lab:sample -->\n", &error));
	output.tables[0].rows.insert(output.tables[0].rows.end(), 9, output.tables[0].rows[0]);
	output.charts.push_back(output.charts[0]);
	REQUIRE(WriteSection(document, scenario, results, output, &error));
	std::string text = read_file(document);
	CHECK_FALSE(contains(text, "| 8 | unix |")); // a long table: its published rows only
	CHECK(contains(text, "| 20 | unix | 20,000 | 184,928 |"));
	CHECK(contains(text, "\n![A chart](page/sample-1.svg)\n<!-- /lab:sample -->\n"));
	CHECK(read_file(dir.file("page/sample-1.svg")) == output.charts[0].svg);
	CHECK(read_file(dir.file("page/sample-2.svg")).empty());

	REQUIRE(ReplaceFile(document, "<!-- lab:other short -->\n<!-- /lab:other -->\n", &error));
	CHECK_FALSE(WriteSection(document, scenario, results, output, &error));
	CHECK(contains(error, "has no section for sample"));
}

TEST_CASE("the terminal gets tables and notes")
{
	Scenario scenario = WithTable();
	Results results = SampleResults();
	std::string text = TextOf(results, Make(scenario, results), 120);
	CHECK(text.rfind("By connections\n\n", 0) == 0);
	CHECK(contains(text, "184,928"));
	CHECK(contains(text, "\nA note.\n\nnote: no zram here: the module is missing\n"));
	results.notes = {"\x1b[2J"};
	CHECK(contains(TextOf(results, Make(scenario, results), 120), "note: \\x1b[2J\n"));
}

TEST_CASE("a comparison shows both figures and their ratio, and marks ranges that do not overlap")
{
	Results first = SampleResults(), second = SampleResults();
	Repeat(&first, 0.05);
	for (Point &point : second.points)
		point.numbers["run.SET.rps"] *= point.values["clients"] == "8" ? 1.5 : 1.08;
	Repeat(&second, 0.05);
	second.points.pop_back(); // 20, tcp
	std::string text = Comparison(first, second);
	CHECK(text.rfind(
		  "By connections\n"
		  "\n"
		  "connections  listen                              first                  second  ratio\n"
		  "-----------  ------  ---------  ----------------------  ----------------------  -----  -\n"
		  "8            unix    SET/s         8,000 (7,600-8,400)  12,000 (11,400-12,600)   1.50  *\n"
		  "                     p99.9, us    9,872 (9,378-10,366)    9,872 (9,378-10,366)   1.00\n",
		  0) == 0);
	CHECK(contains(text, "12,000 (11,400-12,600)   1.50  *\n"));
	CHECK(contains(text, "21,600 (20,520-22,680)   1.08\n"));
	CHECK(contains(text, "-      -\n")); // what only the first has
	CHECK(contains(text, "*: the ranges of the repeats do not overlap. With 3 and 3 repeats of identical "
			     "runs, this happens by chance for 10.0 % of the figures.\n"));
	CHECK_FALSE(contains(text, "differ"));
	CHECK_FALSE(contains(text, "noise"));
	CHECK_FALSE(contains(text, "fork 61"));
	CHECK_FALSE(contains(text, "184,928"));
}

TEST_CASE("a comparison of single runs warns that noise is possible, and lists other differences")
{
	Results first = SampleResults(), second = SampleResults();
	second.scale = "tiny";
	second.host = "";
	second.versions["redis"] = "8.0.0";
	for (Point &point : second.points)
		point.numbers["run.SET.rps"] = 0;
	std::string text = Comparison(first, second);
	CHECK(contains(text, "The scales differ: small and tiny.\n"));
	CHECK(contains(text, "The hosts differ: box and unknown.\n"));
	CHECK(contains(
	    text, "The versions differ: forktail 0.1.0, redis 7.0.15 and forktail 0.1.0, redis 8.0.0.\n"));
	CHECK(contains(text, "A single run cannot distinguish a change from noise"));
	CHECK_FALSE(contains(text, "kernels differ"));
	CHECK_FALSE(contains(text, "*"));
	CHECK(contains(Comparison(second, first), "  8,000      -\n")); // no ratio to 0
	Results other = SampleResults();
	other.scenario = "another";
	std::string error;
	CHECK_FALSE(CompareResults(WithTable(), first, other, 120, &text, &error));
	CHECK(error == "cannot compare runs of two scenarios: sample and another");
}
