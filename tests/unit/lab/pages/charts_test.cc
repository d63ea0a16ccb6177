// SPDX-License-Identifier: MIT
// Charts of a scenario: which figures give which points, and how gnuplot draws them.
#include "lab/pages/charts.h"

#include <cstdlib>

#include "lab/pages/gnuplot.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"
#include "tests/unit/lab/output.h"

using namespace forktail::lab;
using namespace forktail::test;

namespace
{

// SET over clients, one series for each way to listen. The one over tcp was published.
Chart ByClients()
{
	Chart chart;
	chart.title = "Requests by connections";
	chart.x = "clients";
	chart.y = "requests/s";
	chart.series = {MakeColumn("Unix", "run.SET.rps"), MakeColumn("TCP", "run.SET.rps")};
	chart.series[0].where = {{"listen", {"unix"}}};
	chart.series[1].where = {{"listen", {"tcp"}}};
	chart.series[1].published = {{"20", 146081}, {"8", 99000}, {"50", 150000}};
	return chart;
}

std::vector<MadeChart> Make(const Chart &chart, const Results &results = SampleResults())
{
	Scenario scenario = SampleScenario();
	scenario.charts = {chart};
	std::vector<MadeChart> charts;
	std::string error;
	bool good = MakeCharts(scenario, results, &charts, &error);
	INFO(error);
	REQUIRE(good);
	return charts;
}

// "8:8000 20:20000"
std::string Dots(const Series &series)
{
	std::string text;
	for (const Dot &dot : series.dots) {
		char one[64];
		snprintf(one, sizeof one, "%s%g:%g", text.empty() ? "" : " ", dot.x, dot.y);
		text += one;
	}
	return text;
}

struct Drawn {
	Session session;
	std::vector<DrawnChart> charts;
	std::string note, error;

	explicit Drawn(const std::vector<MadeChart> &made)
	{
		REQUIRE(OpenSession(&session, &error));
		bool good = DrawCharts(&session, made, &charts, &note, &error);
		INFO(error);
		REQUIRE(good);
	}
	~Drawn() { CloseSession(&session, &error); }
};

bool NoGnuplot(const Drawn &drawn)
{
	return drawn.note.find("cannot start gnuplot") != std::string::npos;
}

size_t Count(const std::string &text, const std::string &word)
{
	size_t count = 0;
	for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
		count++;
	return count;
}

} // namespace

TEST_CASE("numeric values make lines, and published ones are drawn next to them")
{
	std::vector<MadeChart> charts = Make(ByClients());
	REQUIRE(charts.size() == 1);
	const MadeChart &chart = charts[0];
	CHECK(chart.places.empty());
	CHECK(chart.x_title == "connections");
	REQUIRE(chart.series.size() == 3);
	CHECK(Dots(chart.series[0]) == "8:8000 20:20000");
	CHECK(Dots(chart.series[1]) == "8:4000 20:10000");
	CHECK(chart.series[2].title == "TCP (published)");
	CHECK(chart.series[2].published);
	CHECK(Dots(chart.series[2]) == "8:99000 20:146081 50:150000");
}

TEST_CASE("other values make bars, in the order in which they were run")
{
	Chart chart = ByClients();
	chart.x = "listen";
	chart.log_x = true;
	chart.series = {MakeColumn("SET", "run.SET.rps")};
	chart.series[0].published = {{"tcp", 146081}, {"rdma", 7}};
	chart.where = {{"clients", {"8"}}};
	MadeChart made = Make(chart).at(0);
	CHECK(made.places == std::vector<std::string>{"unix", "tcp", "rdma"});
	CHECK_FALSE(made.log_x);
	CHECK(Dots(made.series[0]) == "0:8000 1:4000");
	CHECK(Dots(made.series[1]) == "1:146081 2:7");
}

TEST_CASE("a chart per name has that name's figures and published ones")
{
	Chart chart = ByClients();
	chart.each = {"SET", "LRANGE_100", "SPOP"};
	chart.series = {MakeColumn("Unix", "run.{row}.rps")};
	chart.series[0].where = {{"listen", {"unix"}}};
	chart.series[0].published = {{"8/SET", 5}, {"20/LRANGE_100", 6}, {"20", 7}};
	std::vector<MadeChart> charts = Make(chart);
	REQUIRE(charts.size() == 2); // no data for SPOP
	CHECK(charts[0].title == "Requests by connections: SET");
	CHECK(Dots(charts[0].series[1]) == "8:5");
	CHECK(charts[1].title == "Requests by connections: LRANGE_100");
	CHECK(Dots(charts[1].series[0]) == "8:800 20:2000");
	CHECK(Dots(charts[1].series[1]) == "20:6");
	chart.title = "{row} by connections";
	chart.series[0].title = "{row}";
	CHECK(Make(chart)[1].title == "LRANGE_100 by connections");
	CHECK(Make(chart)[1].series[1].title == "LRANGE_100 (published)");
}

TEST_CASE("times are drawn in their unit, and 0 is not on a logarithmic axis")
{
	Results results = SampleResults();
	results.points[0].numbers["run.SET.p99_9"] = 0; // 8, unix
	results.points[3].repeats = 3;			// 20, tcp
	results.points[3].least["run.SET.p99_9"] = 0;
	results.points[3].most["run.SET.p99_9"] = 15e6;
	Chart chart = ByClients();
	chart.log_y = true;
	for (Column &column : chart.series) {
		column.value = "run.SET.p99_9";
		column.format = Format::kMs;
	}
	MadeChart made = Make(chart, results).at(0);
	CHECK(made.y_title == "requests/s, ms");
	CHECK(Dots(made.series[0]) == "20:24.68");
	CHECK(made.series[1].dots.back().least == made.series[1].dots.back().y);
	CHECK(made.series[1].dots.back().most == 15.0);
}

TEST_CASE("a chart with several points for one dot is refused")
{
	Scenario scenario = SampleScenario();
	scenario.charts = {ByClients()};
	scenario.charts[0].series[0].where.clear();
	std::vector<MadeChart> charts;
	std::string error;
	REQUIRE_FALSE(MakeCharts(scenario, SampleResults(), &charts, &error));
	CHECK(error.find("series \"Unix\" at \"8\": several points match. They differ in \"listen\"") !=
	      std::string::npos);
}

TEST_CASE("gnuplot draws every series with its title, and the same data is the same file")
{
	Chart chart = ByClients();
	chart.title = "SET & GET <b>'quoted'</b> \\n _x_";
	chart.log_x = true;
	std::vector<MadeChart> made = Make(chart);
	chart.x = "listen";
	chart.where = {{"clients", {"8"}}};
	chart.series = {MakeColumn("SET", "run.SET.rps")};
	made.push_back(Make(chart).at(0));
	made[1].series[0].dots[0].least = 7000;
	made[1].series[0].dots[0].most = 9000;
	Drawn first(made), second(made);
	if (NoGnuplot(first)) {
		WARN("SKIPPED: " << first.note);
		return;
	}
	INFO(first.note);
	REQUIRE(first.charts.size() == 2);
	const std::string &svg = first.charts[0].svg;
	CHECK(svg == second.charts[0].svg);
	CHECK(first.charts[1].svg == second.charts[1].svg);
	CHECK(svg.find("</svg>") != std::string::npos);
	for (const char *title :
	     {">Unix<", ">TCP<", ">TCP (published)<", ">connections<", ">requests/s<", ">20<", ">150,000<"})
		CHECK(Count(svg, title) == 1);
	CHECK(Count(svg, "stroke-dasharray") >= 1);
	CHECK(Count(svg, "<b>") == 0);
	CHECK(Count(svg, "SET &amp; GET &lt;b") == 2); // drawn, and described for screen readers
	CHECK(Count(svg, "\\n _x_") == 2);
	CHECK(Count(svg, "GNUPLOT") == 0);
	CHECK(Count(svg, "gnuplot_plot_1</title>") == 0);
	// Two charts in a page: no id in one is the same as in the other.
	CHECK(Count(svg, "id='gp") + Count(svg, "'#gp") == 0);
	CHECK(Count(svg, "id='chart1-gpPt6'") == 1);
	CHECK(Count(first.charts[1].svg, "chart1-") == 0);
	for (const char *place : {">unix<", ">tcp<", ">SET<"})
		CHECK(Count(first.charts[1].svg, place) == 1);
}

TEST_CASE("gnuplot draws charts of one dot, of zeros, of bytes, and of nothing but published figures")
{
	MadeChart one;
	one.title = "one";
	one.series = {{"a", false, {{5, 0, {}, {}}}}};
	MadeChart logs = one;
	logs.log_x = logs.log_y = true;
	logs.series[0].dots = {{10, 1000, {}, {}}};
	MadeChart bytes = one;
	bytes.format = Format::kBytes;
	bytes.series[0].dots = {{1, 84e6, {}, {}}, {2, -3e6, {}, {}}};
	MadeChart theirs = one;
	theirs.series.push_back({"a (published)", true, {{5, 7, {}, {}}}});
	theirs.series[0].dots.clear();
	MadeChart bars = theirs;
	bars.places = {"x", "y", "z", "a", "b", "c"};
	Drawn drawn({one, logs, bytes, theirs, bars});
	if (NoGnuplot(drawn)) {
		WARN("SKIPPED: " << drawn.note);
		return;
	}
	INFO(drawn.note);
	REQUIRE(drawn.charts.size() == 5);
	for (const DrawnChart &chart : drawn.charts)
		CHECK(chart.svg.find("</svg>") != std::string::npos);
	CHECK(Count(drawn.charts[1].svg, ">1,000<") == 1);
	CHECK(Count(drawn.charts[2].svg, ">100 MB<") == 1);
	CHECK(Count(drawn.charts[3].svg, ">a (published)<") == 1);
	CHECK(Count(drawn.charts[4].svg, ">a (published)<") == 1);
}

TEST_CASE("without gnuplot there are no charts, with a note")
{
	forktail::test::TempDir empty;
	std::string path = getenv("PATH");
	setenv("PATH", empty.path().c_str(), 1);
	Drawn drawn(Make(ByClients()));
	setenv("PATH", path.c_str(), 1);
	CHECK(drawn.charts.empty());
	CHECK(drawn.note.rfind("no charts: cannot start gnuplot", 0) == 0);
}
