// SPDX-License-Identifier: MIT
// Tables alone: the schema is consistent and documented, CSV quotes what it must, and times of day follow
// from a run's clock readings.
#include <set>
#include <unistd.h>

#include "analysis/exports.h"
#include "analysis/exports/wall_clock.h"
#include "analysis/run.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;
using namespace forktail::analysis::exports;

TEST_CASE("tables and columns have unique names, and each row names its run")
{
	std::set<std::string> tables;
	for (const TableKind &t : Tables()) {
		CHECK(tables.insert(t.name).second);
		CHECK(std::string(t.columns[0].name) == "run_id");
		std::set<std::string> columns;
		for (const TableColumn &c : t.columns)
			CHECK(columns.insert(c.name).second);
	}
}

TEST_CASE("docs/reference/exports-and-sql.md lists the tables with their columns")
{
	std::string expected = "| table | one row per | columns |\n|---|---|---|\n";
	for (const TableKind &t : Tables()) {
		expected += std::string("| `") + t.name + "` | " + t.row + " |";
		for (size_t c = 1; c < t.columns.size(); c++) {
			const TableColumn &column = t.columns[c];
			expected += (c > 1 ? ", `" : " `") + std::string(column.name) + "`";
			if (*column.meaning)
				expected += std::string(" (") + column.meaning + ")";
		}
		expected += " |\n";
	}
	std::ifstream file(FORKTAIL_SOURCE_DIR "/docs/reference/exports-and-sql.md");
	std::ostringstream page;
	page << file.rdbuf();
	INFO("copy this table into docs/reference/exports-and-sql.md:\n" << expected);
	CHECK(page.str().find("\n\n" + expected + "\n") != std::string::npos);
}

TEST_CASE("CSV by RFC 4180: an unknown value is an empty field, empty text is a pair of quotes")
{
	const TableKind kind = {"t",
				{{"run_id", ColumnType::Name},
				 {"text", ColumnType::Text},
				 {"n", ColumnType::Int},
				 {"time", ColumnType::Time},
				 {"yes", ColumnType::Bool}}};
	char directory[] = "/tmp/forktail-csv-XXXXXX";
	REQUIRE(mkdtemp(directory));
	auto sink = MakeCsv(directory);
	REQUIRE(sink->Open({kind}));
	Batch batch(kind);
	batch.SetNames(0, {"id"});
	batch.Row().Text("a \"b\",\r\nc").Number(7).Number(1'000'000'001).Number(true);
	batch.Row().Text("").Unknown().Unknown().Number(false);
	batch.Row().Unknown().Number(0).Number(59'000'000'000).Number(false);
	REQUIRE(sink->Write(0, batch));
	REQUIRE(sink->Close());
	const std::string path = std::string(directory) + "/t.csv";
	std::ifstream file(path, std::ios::binary);
	std::ostringstream text;
	text << file.rdbuf();
	CHECK(text.str() == "run_id,text,n,time,yes\r\n"
			    "id,\"a \"\"b\"\",\r\nc\",7,1970-01-01T00:00:01.000000001Z,true\r\n"
			    "id,\"\",,,false\r\n"
			    "id,,0,1970-01-01T00:00:59.000000000Z,false\r\n");
	std::ifstream schema(std::string(directory) + "/schema.json");
	CHECK(nlohmann::json::parse(schema)["t"].dump() ==
	      R"([["run_id","text"],["text","text"],["n","int64"],["time","time"],["yes","bool"]])");
	std::filesystem::remove_all(directory);
}

TEST_CASE("CSV has no texts that a spreadsheet executes, unless they are wanted as they are")
{
	const TableKind kind = {
	    "t", {{"run_id", ColumnType::Name}, {"text", ColumnType::Text}, {"n", ColumnType::Int}}};
	for (const bool raw : {false, true}) {
		char directory[] = "/tmp/forktail-csv-XXXXXX";
		REQUIRE(mkdtemp(directory));
		auto sink = MakeCsv(directory, raw);
		REQUIRE(sink->Open({kind}));
		Batch batch(kind);
		batch.SetNames(0, {"@id"});
		for (const char *name : {"=cmd|'/c calc'!A", "+1", "-1", "@SUM", "\tx", "a=1"})
			batch.Row().Text(name).Number(-7);
		REQUIRE(sink->Write(0, batch));
		REQUIRE(sink->Close());
		std::ifstream file(std::string(directory) + "/t.csv", std::ios::binary);
		std::ostringstream text;
		text << file.rdbuf();
		const std::string q = raw ? "" : "'";
		std::string expected = "run_id,text,n\r\n";
		for (const std::string name : {"=cmd|'/c calc'!A", "+1", "-1", "@SUM", "\tx"})
			expected += q + "@id," + q + name + ",-7\r\n";
		CHECK(text.str() == expected + q + "@id,a=1,-7\r\n");
		std::filesystem::remove_all(directory);
	}
}

TEST_CASE("the time of day is that of the nearest reading of both clocks")
{
	Run run;
	CHECK(WallClock(run).At(5) == 0);
	for (uint64_t i : {3, 1, 2}) { // one that is set by 10 ns each second
		ft_clock c = {};
		c.monotonic_ns = i * 1000;
		c.realtime_ns = 1'000'000 + i * 1010;
		run.clocks.push_back(c);
	}
	WallClock clock(run);
	for (uint64_t t : {0, 999, 1000, 1499, 1501, 2400, 2600, 9000, 1000, 2501, 1499})
		CHECK(clock.At(t) == static_cast<int64_t>(RealtimeNs(run, t)));
	CHECK(clock.At(INT64_MAX) == 0);
	CHECK(clock.At(UINT64_MAX) == 0);
}
