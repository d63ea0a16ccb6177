// SPDX-License-Identifier: MIT
// One real run in every format, read with third-party readers: DuckDB and pyarrow, Perfetto's trace
// processor, HdrHistogram's reader, OpenTelemetry's messages, Prometheus' parser. All results have to equal
// explain's: totals by cause, percentiles, counts. The readers are export_tables_check.py,
// export_text_read.py and export_perfetto_read.mjs.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
namespace fs = std::filesystem;

namespace
{

const std::string kReaders = FORKTAIL_SOURCE_DIR "/tests/system/report",
		  kPython = FORKTAIL_SOURCE_DIR "/build-python";
const char *const kFiles[] = {"hlog", "folded", "speedscope.json", "otlp.jsonl", "prom", "pftrace"};
const char *const kDirectories[] = {"parquet", "csv"};
const char kSlow[] = "1ms"; // less than a fork, however slow the host makes the other requests

bool HaveReaders()
{
	if (geteuid() != 0) {
		WARN("SKIPPED: recording needs root");
		return false;
	}
	if (fs::exists(kPython + "/made") && fs::exists(program("forktail-parquet")))
		return true;
	WARN("SKIPPED: no build-python/ (script/python), or forktail-parquet was built without it");
	return false;
}

// A server that saves twice under load, over TCP.
void MakeRun(const std::string &path)
{
	RedisOptions options;
	options.tcp = true;
	options.config = {"--enable-debug-command", "yes"};
	Redis server(options);
	server.command({"DEBUG", "POPULATE", "1000000", "key", "100"}); // so that fork() takes milliseconds
	fs::create_directories(path);
	Process recorder({program("forktail"), "record", "--pid", std::to_string(server.pid()), "-o",
			  path + "/server.forktail"});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	INFO(recorder.err());
	REQUIRE(recorder.running());
	Process load({program("forktail"), "load", "-q", "-p", std::to_string(server.port()), "--rate",
		      "2000", "--duration", "4s", "-c", "10", "-r", "20000", "--ratio", "1:1", "-o",
		      path + "/load.forktail"});
	for (int i = 0; i < 2; i++) {
		REQUIRE(eventually([&] { return load.running(); }, Seconds(10)));
		sleep(1);
		server.command({"BGSAVE"});
	}
	INFO(load.err());
	REQUIRE(load.wait(Seconds(60)) == 0);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
}

// All formats of the run at `path`. Returns the standard error of each, by format.
std::map<std::string, std::string> ExportAll(const std::string &path, const std::string &to)
{
	std::map<std::string, std::string> said;
	fs::create_directories(to);
	auto make = [&](const std::string &format, std::vector<std::string> argv) {
		argv.insert(argv.begin(), {program("forktail"), "export", path, "--slow", kSlow, "-o",
					   to + "/run." + format});
		Result r = run(argv);
		INFO(format << ": " << r.err);
		REQUIRE(r.status == 0);
		CHECK(r.out.empty());
		said[format] = r.err;
	};
	for (const char *format : kFiles)
		make(format, {});
	for (const char *format : kDirectories)
		make(format, {"--to", format});
	return said;
}

void Read(const std::vector<std::string> &reader)
{
	Result r = run(reader);
	INFO(reader[1] << "\n" << r.out << r.err);
	CHECK(r.status == 0);
}

// `holds`: what the trace's reader expects in it.
void CheckSame(const std::string &path, const std::string &to, const char *holds)
{
	INFO(path);
	ExportAll(path, to);
	Result explained = run({program("forktail"), "explain", path, "--slow", kSlow, "--json"});
	INFO(explained.err);
	REQUIRE(explained.status == 0);
	write_file(to + "/explain.json", explained.out);
	const std::string python = kPython + "/bin/python3", json = to + "/explain.json";
	Read({python, kReaders + "/export_tables_check.py", json, to + "/run.parquet", to + "/run.csv"});
	Read({python, kReaders + "/export_text_read.py", to});
	Read({FORKTAIL_NODE, kReaders + "/export_perfetto_read.mjs", kPython, to + "/run.pftrace", json,
	      holds});
}

// A table without its first column, which names the recordings.
std::string WithoutRunId(const std::string &csv)
{
	std::string out;
	std::istringstream lines(csv);
	for (std::string line; std::getline(lines, line);)
		out += line.substr(std::min(line.find(','), line.size())) + "\n";
	return out;
}

} // namespace

TEST_CASE("every reader finds explain's results in an export")
{
	if (!HaveReaders())
		return;
	TempDir dir;
	const std::string whole = dir.file("run");
	MakeRun(whole);
	CheckSame(whole, dir.file("whole"), "fork");
	CheckSame(whole + "/server.forktail", dir.file("server"), "no requests");
	CheckSame(whole + "/load.forktail", dir.file("load"), "no server");

	// A recording of another boot has another clock: it is in no export, with a message.
	const std::string other = dir.file("other"), left_out = whole + "/a.forktail";
	fs::create_directories(other);
	REQUIRE(run({program("bench_explain_run"), other, "0.01"}).status == 0);
	fs::copy_file(other + "/server.forktail", left_out);
	for (const auto &[format, said] : ExportAll(whole, dir.file("boots"))) {
		INFO(format << ": " << said);
		CHECK(said.find("; a.forktail is ignored") != std::string::npos);
	}
	for (const char *format : kFiles) {
		INFO(format);
		const std::string name = std::string("/run.") + format;
		CHECK((read_file(dir.file("boots") + name) == read_file(dir.file("whole") + name)));
	}
	for (const auto &table : fs::directory_iterator(dir.file("whole/run.csv"))) {
		INFO(table.path());
		const std::string name = "/run.csv/" + table.path().filename().string();
		CHECK(WithoutRunId(read_file(dir.file("boots") + name)) ==
		      WithoutRunId(read_file(table.path())));
	}
	fs::remove(left_out);

	for (const char *name : {"/server.forktail", "/load.forktail"})
		fs::resize_file(whole + name, fs::file_size(whole + name) * 2 / 3);
	CheckSame(whole, dir.file("cut"), "a cut recording");
}
