// SPDX-License-Identifier: MIT
// Writes the page of a synthetic experiment with a table, notes and charts drawn by gnuplot, which the
// browser test opens.
//   lab_page_sample OUT.html
// Exit status 77: gnuplot is not installed.
#include <cstdio>
#include <filesystem>
#include <string>

#include "lab/pages/page.h"
#include "lab/run/files.h"
#include "tests/unit/lab/output.h"

using namespace forktail::lab;
using namespace forktail::test;

namespace
{

Scenario WithChart()
{
	Scenario scenario = SampleScenario();
	scenario.about = "What `</script><script>alert(1)</script>` does.";
	scenario.report = "A3";
	scenario.source = "Redis 3.2.3, E5-2620 v3";
	scenario.question = "Why?";
	Table table;
	table.title = "By <img src=x onerror=alert(2)> connections";
	table.by = {"clients", "listen"};
	table.columns = {MakeColumn("SET/s", "run.SET.rps"),
			 MakeColumn("p99.9", "run.SET.p99_9", Format::kUs),
			 MakeColumn("causes", "run.causes", Format::kText)};
	scenario.tables = {table};
	return scenario;
}

MadeChart Lines()
{
	MadeChart chart;
	chart.title = "Throughput by connections";
	chart.x_title = "connections";
	chart.y_title = "SET/s";
	Series unix_socket, tcp;
	unix_socket.title = "unix";
	unix_socket.dots = {{8, 8000, {}, {}}, {20, 20000, {}, {}}};
	tcp.title = "tcp";
	tcp.dots = {{8, 4000, {}, {}}, {20, 10000, {}, {}}};
	chart.series = {unix_socket, tcp};
	return chart;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: lab_page_sample OUT.html\n");
		return 2;
	}
	Scenario scenario = WithChart();
	Results results = SampleResults();
	results.notes.push_back("a note with </style><script>alert(3)</script>");
	Output output;
	Session session;
	std::string note, error;
	bool good = OpenSession(&session, &error) && MakeTables(scenario, results, &output.tables, &error) &&
		    DrawCharts(&session, {Lines()}, &output.charts, &note, &error);
	CloseSession(&session, &error);
	std::string directory = std::filesystem::path(argv[1]).parent_path();
	good = good && ReplaceFile(argv[1], PageOf(scenario, results, output, directory), &error);
	if (!good || !note.empty()) {
		fprintf(stderr, "%s\n", good ? note.c_str() : error.c_str());
		return good ? 77 : 1;
	}
	return 0;
}
