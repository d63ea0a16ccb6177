// SPDX-License-Identifier: MIT
// Tables of a scenario: which point gives which cell, and how cells are printed.
#include "lab/pages/tables.h"

#include "tests/support/catch.h"
#include "tests/unit/lab/output.h"

using namespace forktail::lab;
using namespace forktail::test;

namespace
{

MadeTable Make(const Table &table, const Results &results = SampleResults())
{
	MadeTable made;
	std::string error;
	bool good = MakeTable(SampleScenario(), table, results, &made, &error);
	INFO(error);
	REQUIRE(good);
	for (const auto &row : made.rows)
		REQUIRE(row.size() == made.heads.size());
	return made;
}

std::string Refusal(const Table &table)
{
	MadeTable made;
	std::string error;
	REQUIRE_FALSE(MakeTable(SampleScenario(), table, SampleResults(), &made, &error));
	return error;
}

// Rows as "a|b|c".
std::vector<std::string> Rows(const MadeTable &made)
{
	std::vector<std::string> rows;
	for (const auto &row : made.rows) {
		rows.emplace_back();
		for (const Cell &cell : row)
			rows.back() += (&cell == &row[0] ? "" : "|") + cell.text;
	}
	return rows;
}

std::string Heads(const MadeTable &made)
{
	std::string heads;
	for (const Head &head : made.heads)
		heads += (&head == &made.heads[0] ? "" : "|") + head.title;
	return heads;
}

Table ByClients()
{
	Table table;
	table.title = "By connections";
	table.by = {"clients"};
	Column unix_rps = MakeColumn("Unix", "run.SET.rps"), tcp_rps = MakeColumn("TCP", "run.SET.rps");
	unix_rps.where = {{"listen", {"unix"}}};
	unix_rps.published = {{"20", 184928}};
	tcp_rps.where = {{"listen", {"tcp"}}};
	table.columns = {unix_rps, tcp_rps};
	return table;
}

using Strings = std::vector<std::string>;

} // namespace

TEST_CASE("rows by name take their figures from one point")
{
	Table table;
	table.names = {"SET", "LRANGE_100", "SPOP"};
	table.where = {{"clients", {"20"}}};
	table.columns = {MakeColumn("Unix", "run.{row}.rps"),
			 MakeColumn("gain", "run.{row}.rps / base.run.{row}.rps", Format::kDecimals2)};
	table.columns[0].where = table.columns[1].where = {{"listen", {"unix"}}};
	table.columns[0].published = {{"SET", 184928}, {"SPOP", 241284}};
	table.columns[1].against = {{"listen", "tcp"}};
	MadeTable made = Make(table);
	CHECK(Heads(made) == "|Unix|published|gain");
	CHECK(Rows(made) ==
	      Strings{"SET|20,000|184,928|2.00", "LRANGE_100|2,000|-|2.00", "SPOP|-|241,284|-"});
}

TEST_CASE("rows by variables are the points, each column its own")
{
	MadeTable made = Make(ByClients());
	CHECK(Heads(made) == "connections|Unix|published|TCP");
	CHECK(Rows(made) == Strings{"8|8,000|-|4,000", "20|20,000|184,928|10,000"});

	Table table = ByClients();
	table.by = {"clients", "listen"};
	table.columns = {MakeColumn("p99.9", "run.SET.p99_9", Format::kUs),
			 MakeColumn("CPU", "run.redis.cpu_percent", Format::kPercent),
			 MakeColumn("memory", "run.redis.used_memory", Format::kBytes)};
	table.columns[0].published = {{"8/tcp", 4.25}};
	made = Make(table);
	CHECK(Heads(made) == "connections|listen|p99.9, us|published|CPU, %|memory");
	CHECK(Rows(made) == Strings{"8|unix|9,872|-|61.4|84.0 MB", "8|tcp|4,936|4.25|61.4|84.0 MB",
				    "20|unix|24,680|-|61.4|84.0 MB", "20|tcp|12,340|-|61.4|84.0 MB"});
}

TEST_CASE("rows by both list all names of each point")
{
	Table table = ByClients();
	table.names = {"SET", "LRANGE_100"};
	table.where = {{"listen", {"tcp"}}};
	table.columns = {MakeColumn("requests/s", "run.{row}.rps")};
	table.columns[0].published = {{"20/SET", 5}, {"SET", 6}};
	CHECK(Rows(Make(table)) ==
	      Strings{"8|SET|4,000|-", "8|LRANGE_100|400|-", "20|SET|10,000|5", "20|LRANGE_100|1,000|-"});
}

TEST_CASE("a row with several matching points is refused, naming the variable that differs")
{
	Table table = ByClients();
	table.columns[0].where.clear();
	CHECK(Refusal(table) == "table \"By connections\", column \"Unix\", row \"8\": several points match. "
				"They differ in \"listen\": select one with `where`");
	table = ByClients();
	table.columns[1].value = "run.SET.rps +";
	CHECK(Refusal(table).find("is not a formula") != std::string::npos);
}

TEST_CASE("a missing value is a dash, and its column stays")
{
	Table table = ByClients();
	table.columns.push_back(MakeColumn("seeks", "run.disk.seeks"));
	table.columns[2].where = {{"listen", {"tcp"}}};
	Results results = SampleResults();
	results.points.erase(results.points.begin() + 1); // 8/tcp
	CHECK(Rows(Make(table, results)) == Strings{"8|8,000|-|-|-", "20|20,000|184,928|10,000|-"});
	results.points.clear();
	CHECK(Make(table, results).rows.empty());
	CHECK(Heads(Make(table, results)) == "connections|Unix|published|TCP|seeks");
}

TEST_CASE("texts and variables are in text columns, on one line")
{
	Table table = ByClients();
	table.where = {{"clients", {"8"}}, {"listen", {"unix"}}};
	table.columns = {MakeColumn("worst", "run.worst", Format::kText),
			 MakeColumn("keys", "keys", Format::kText),
			 MakeColumn("none", "run.none", Format::kText)};
	MadeTable made = Make(table);
	CHECK(Rows(made) ==
	      Strings{"8|the fork held the server for 58.9 ms it copied page tables another|5000|-"});
	CHECK_FALSE(made.heads[1].number);
}

TEST_CASE("repeats print the median and the range around it")
{
	Results results = SampleResults();
	for (Point &point : results.points) {
		point.repeats = 3;
		point.least = {{"run.SET.rps", point.numbers["run.SET.rps"] - 100}};
		point.most = {{"run.SET.rps", point.numbers["run.SET.rps"] + 300}};
	}
	Table table = ByClients();
	table.columns[1].value = "run.SET.rps * 2";
	MadeTable made = Make(table, results);
	CHECK(Rows(made) ==
	      Strings{"8|8,000 (7,900-8,300)|-|8,000", "20|20,000 (19,900-20,300)|184,928|20,000"});
	CHECK(made.rows[0][1].least == 7900.0);
	CHECK(TableHtml(made).find(
		  "<td class=\"number\">8,000 <span class=\"range\">(7,900-8,300)</span></td>") !=
	      std::string::npos);
	CHECK(TableCsv(made) == "connections,Unix,Unix (least),Unix (most),Unix (published),TCP\n"
				"8,8000,7900,8300,,8000\n"
				"20,20000,19900,20300,184928,20000\n");
	// All equal: no range to print.
	for (Point &point : results.points)
		point.least = point.most = {{"run.SET.rps", point.numbers["run.SET.rps"]}};
	CHECK(Rows(Make(ByClients(), results))[0] == "8|8,000|-|4,000");
}

TEST_CASE("a table as text is aligned, with titles wrapped to their figures' width")
{
	Table table = ByClients();
	table.columns[1].title = "requests over the loopback interface";
	CHECK(TableText(Make(table), 100) == "                                 requests\n"
					     "                                 over the\n"
					     "                                 loopback\n"
					     "connections    Unix  published  interface\n"
					     "-----------  ------  ---------  ---------\n"
					     "          8   8,000          -      4,000\n"
					     "         20  20,000    184,928     10,000\n");
	// Too wide: it continues below, with a published column next to its own.
	CHECK(TableText(Make(ByClients()), 30) == "connections    Unix  published\n"
						  "-----------  ------  ---------\n"
						  "          8   8,000          -\n"
						  "         20  20,000    184,928\n"
						  "\n"
						  "connections     TCP\n"
						  "-----------  ------\n"
						  "          8   4,000\n"
						  "         20  10,000\n");
	CHECK(TableText(Make(ByClients()), 20) == TableText(Make(ByClients()), 30));
}

TEST_CASE("a cell's text cannot break the table")
{
	Table table;
	table.names = {"a|b", "<script>alert(1)</script>", "*x* _y_ LRANGE_100 `z` \\"};
	table.columns = {MakeColumn("\"A\" & <b>", "run.{row}", Format::kText)};
	table.where = {{"clients", {"8"}}, {"listen", {"tcp"}}};
	MadeTable made = Make(table);
	CHECK(TableMarkdown(made) == "|  | \"A\" \\& \\<b\\> |\n"
				     "| --- | --- |\n"
				     "| a\\|b | - |\n"
				     "| \\<script\\>alert(1)\\</script\\> | - |\n"
				     "| \\*x\\* \\_y\\_ LRANGE_100 \\`z\\` \\\\ | - |\n");
	std::string html = TableHtml(made);
	CHECK(html.find("<script>") == std::string::npos);
	CHECK(html.find("<th scope=\"row\">&lt;script&gt;alert(1)&lt;/script&gt;</th>") != std::string::npos);
	CHECK(html.find("<th scope=\"col\">&quot;A&quot; &amp; &lt;b&gt;</th>") != std::string::npos);
	made.rows[0][0].text = "a,\"b\"\nc";
	CHECK(TableCsv(made).find("\"a,\"\"b\"\"\nc\",-") != std::string::npos);
}

TEST_CASE("Markdown and HTML mark numbers and published figures")
{
	MadeTable made = Make(ByClients());
	CHECK(TableMarkdown(made) == "| connections | Unix | *published* | TCP |\n"
				     "| ---: | ---: | ---: | ---: |\n"
				     "| 8 | 8,000 | - | 4,000 |\n"
				     "| 20 | 20,000 | 184,928 | 10,000 |\n");
	CHECK(TableHtml(made).find("<td class=\"number published\">184,928</td>") != std::string::npos);
}
