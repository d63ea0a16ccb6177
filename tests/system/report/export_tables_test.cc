// SPDX-License-Identifier: MIT
// A real run as tables, with explain's options: DuckDB and pyarrow read the same results as explain prints
// (for the whole run see export_same_test.cc), the page's queries run, and no incomplete file ever has the
// requested name.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/mount.h>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/system/load/background.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace
{

const char kPython[] = FORKTAIL_SOURCE_DIR "/build-python/bin/python3";

bool HavePython()
{
	if (access(FORKTAIL_SOURCE_DIR "/build-python/made", F_OK) == 0 &&
	    access(program("forktail-parquet").c_str(), X_OK) == 0)
		return true;
	WARN("SKIPPED: no build-python/ (script/python), or forktail-parquet was built without it");
	return false;
}

Result Export(const std::string &run_path, const std::string &format, const std::string &out,
	      const std::vector<std::string> &more = {})
{
	std::vector<std::string> argv = {program("forktail"), "export", run_path, "--to", format, "-o", out};
	argv.insert(argv.end(), more.begin(), more.end());
	return run(argv);
}

// Exports both ways and compares with explain.
void CheckTables(const TempDir &dir, const std::string &run_path, const std::vector<std::string> &more = {})
{
	INFO(run_path);
	std::vector<std::string> argv = {program("forktail"), "explain", run_path, "--json"};
	argv.insert(argv.end(), more.begin(), more.end());
	Result explained = run(argv);
	INFO(explained.err);
	REQUIRE(explained.status == 0);
	write_file(dir.file("explained.json"), explained.out);
	for (const char *format : {"parquet", "csv"}) {
		fs::remove_all(dir.file(format));
		Result r = Export(run_path, format, dir.file(format), more);
		INFO(r.err);
		REQUIRE(r.status == 0);
		CHECK(r.out.empty());
	}
	Result r = run({kPython, FORKTAIL_SOURCE_DIR "/tests/system/report/export_tables_check.py",
			dir.file("explained.json"), dir.file("parquet"), dir.file("csv")});
	INFO(r.out << r.err);
	CHECK(r.status == 0);
}

// A page's queries, in order.
std::vector<std::string> QueriesOf(const std::string &page)
{
	std::vector<std::string> all;
	const std::string begin = "```sql\n", end = "```";
	for (size_t at = 0; (at = page.find(begin, at)) != std::string::npos;) {
		at += begin.size();
		all.push_back(page.substr(at, page.find(end, at) - at));
	}
	return all;
}

void CheckSql(const TempDir &dir, const std::string &run_path)
{
	const ProcessOptions options = {{{"XDG_CACHE_HOME", dir.file("cache")}}, "", ""};
	const std::vector<std::string> queries =
	    QueriesOf(read_file(FORKTAIL_SOURCE_DIR "/docs/reference/exports-and-sql.md"));
	CHECK(queries.size() >= 5);
	for (const std::string &query : queries) {
		Result r = run({program("forktail"), "sql", run_path, "--slow", "1ms", "--json", "-c", query},
			       Seconds(60), options);
		INFO(query << r.out << r.err);
		REQUIRE(r.status == 0);
		CHECK(!parse_json(r.out).empty());
	}
	// An unchanged run is exported once. Two runs are one data set.
	fs::path cached = fs::directory_iterator(dir.file("cache/forktail"))->path();
	const auto made = fs::last_write_time(cached);
	const std::string copy = dir.file("another");
	fs::copy(run_path, copy);
	Result r = run({program("forktail"), "sql", run_path, copy, "--slow", "1ms", "--csv",
			"select count(*) n from runs"},
		       Seconds(60), options);
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(r.out.find("n\n2") == 0);
	CHECK(fs::last_write_time(cached) == made);
	// A host's file that comes later is seen.
	const auto threads = [&] {
		return run({program("forktail"), "sql", copy, "--slow", "1ms", "--csv",
			    "select count(*) n from threads"},
			   Seconds(60), options)
		    .out;
	};
	const std::string before = threads();
	fs::create_directories(copy + "/hosts/second");
	fs::copy(copy + "/server.forktail", copy + "/hosts/second/server.forktail");
	CHECK(threads() != before);
	// So is a mark.
	const Result explained = run({program("forktail"), "explain", copy, "--slow", "1ms", "--json"});
	const auto first_ns = parse_json(explained.out)["requests"]["first_realtime_ns"].get<uint64_t>();
	CHECK(run({program("forktail"), "mark", copy, "deploy 42", "--at",
		   std::to_string(first_ns / 1'000'000'000 + 1)})
		  .status == 0);
	const Result marks =
	    run({program("forktail"), "sql", copy, "--slow", "1ms", "--csv", "select text from marks"},
		Seconds(60), options);
	INFO(marks.err);
	CHECK(marks.out.find("deploy 42") != std::string::npos);
	CHECK(run({program("forktail"), "sql", run_path, "--slow", "1ms", "select nothing_of_that"},
		  Seconds(60), options)
		  .status == 1);
	CHECK(run({program("forktail"), "sql", dir.file("nowhere")}, Seconds(60), options).status == 3);
	CHECK(run({program("forktail"), "sql", run_path, "--csv"}, Seconds(60), options).status == 2);
}

// A server with some memory under load, with snapshots.
void MakeRun(const std::string &path)
{
	RedisOptions options;
	options.config = {"--enable-debug-command", "yes"};
	Redis server(options);
	REQUIRE(server.command({"DEBUG", "POPULATE", "1000000", "key", "100"}) ==
		"OK"); // fork() takes milliseconds
	fs::create_directory(path);
	Process recorder({program("forktail"), "record", "--pid", std::to_string(server.pid()), "-o",
			  path + "/server.forktail"});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	INFO(recorder.err());
	REQUIRE(recorder.running());
	Process load({program("forktail"), "load", "-q", "-s", server.socket(), "-o", path + "/load.forktail",
		      "--rate", "5000", "--duration", "4", "-r", "100000", "--ratio", "1:1"});
	for (int i = 0; i < 2; i++) {
		std::this_thread::sleep_for(Seconds(1.2));
		server.command({"BGSAVE"});
	}
	REQUIRE(load.wait(Seconds(60)) == 0);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
}

// The names in a directory.
std::vector<std::string> NamesIn(const std::string &directory)
{
	std::vector<std::string> names;
	for (const auto &entry : fs::directory_iterator(directory))
		names.push_back(entry.path().filename());
	std::sort(names.begin(), names.end());
	return names;
}

} // namespace

TEST_CASE("tables of a part of a run, or with another threshold, equal explain's results for it")
{
	if (!HavePython())
		return;
	TempDir dir;
	const std::string real = dir.file("run");
	MakeRun(real);
	CheckTables(dir, real, {"--slow", "p50"});
	CheckTables(dir, real, {"--since", "+1s", "--until", "+2s"});
	CheckSql(dir, real);
}

TEST_CASE("what the server's kernel knows of requests is in the tables")
{
	if (!HavePython())
		return;
	TempDir dir;
	const std::string real = dir.file("run");
	Redis server({.tcp = true, .config = {}});
	Recorder recorder(server.pid(), {"--requests"});
	BackgroundLoad load(
	    {"-p", std::to_string(server.port()), "-c", "4", "-n", "4000", "-r", "1000", "--ratio", "1:1"});
	load.end();
	recorder.stop();
	fs::create_directory(real);
	fs::copy_file(recorder.path(), real + "/server.forktail");
	fs::copy_file(load.dir.file("log"), real + "/load.forktail");
	CheckTables(dir, real);
	CheckTables(dir, real + "/server.forktail");
}

TEST_CASE("all slow requests are exported, however many explain prints")
{
	if (!HavePython())
		return;
	TempDir dir;
	const std::string made = dir.file("run");
	fs::create_directory(made);
	REQUIRE(run({program("bench_explain_run"), made, "0.4"}).status == 0);
	CheckTables(dir, made, {"--slow", "1ns", "--memory", "64M"});
}

TEST_CASE("a failed export leaves nothing under the name")
{
	TempDir dir;
	const std::string made = dir.file("run"), out = dir.file("out");
	fs::create_directory(made);
	REQUIRE(run({program("bench_explain_run"), made, "1"}).status == 0);

	Result r = Export(made, "xlsx", out);
	CHECK(r.status == 2);
	CHECK(r.err.find("unknown format 'xlsx'") != std::string::npos);
	CHECK(run({program("forktail"), "export", made, "-o", out}).status == 2); // no extension either
	CHECK(Export(dir.file("nowhere"), "csv", out).status == 3);

	fs::create_directory(out);
	write_file(out + "/mine", "kept");
	r = Export(made, "csv", out);
	CHECK(r.status == 3);
	CHECK(r.err.find("already exists") != std::string::npos);
	CHECK(NamesIn(out) == std::vector<std::string>{"mine"});
	write_file(dir.file("file"), "kept");
	CHECK(Export(made, "csv", dir.file("file")).status == 3);
	CHECK(read_file(dir.file("file")) == "kept");

	// forktail alone, without the program that writes Parquet.
	fs::copy(program("forktail"), dir.file("forktail"));
	r = run({dir.file("forktail"), "export", made, "-o", dir.file("p.parquet")}, Seconds(60),
		{{{"PATH", "/usr/bin:/bin"}}, "", ""});
	CHECK(r.status == 3);
	CHECK(r.err.find("cannot find forktail-parquet") != std::string::npos);
	CHECK(!fs::exists(dir.file("p.parquet")));

	// Killed in the middle: the partial output has another name.
	fs::create_directory(dir.file("killed"));
	const std::string again = dir.file("killed/again");
	Process killed({program("forktail"), "export", made, "--to", "csv", "-o", again});
	const auto rows = [&] {
		std::error_code ec;
		for (const std::string &name : NamesIn(dir.file("killed")))
			return fs::file_size(dir.file("killed/" + name + "/requests.csv"), ec);
		return uintmax_t{0};
	};
	REQUIRE(eventually([&] { return rows() > 1 << 20 && rows() != UINTMAX_MAX; }, Seconds(60)));
	killed.signal(SIGKILL);
	REQUIRE(killed.wait(Seconds(10)) == 128 + SIGKILL);
	CHECK(!fs::exists(again));
	CHECK(Export(made, "csv", again).status == 0);
	CHECK(fs::exists(again + "/requests.csv"));
}

TEST_CASE("a full disk is reported in one sentence")
{
	TempDir dir;
	const std::string made = dir.file("run"), disk = dir.file("disk");
	fs::create_directory(made);
	fs::create_directory(disk);
	REQUIRE(run({program("bench_explain_run"), made, "0.2"}).status == 0);
	if (mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
		WARN("SKIPPED: cannot mount a small tmpfs here");
		return;
	}
	struct Unmount {
		const std::string &at;
		~Unmount() { umount(at.c_str()); }
	} unmount = {disk};
	for (const std::string format : {"csv", "parquet"}) {
		if (format == "parquet" && !HavePython())
			continue;
		Result r = Export(made, format, disk + "/out");
		INFO(r.err);
		CHECK(r.status == 3);
		CHECK(r.err.find("o space left on device") != std::string::npos);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
		CHECK(NamesIn(disk).empty());
	}
}
