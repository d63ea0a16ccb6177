// SPDX-License-Identifier: MIT
// One real run, exported to every format that is a file, and read by what others read it with: Perfetto's
// trace processor, HdrHistogram's reader, OpenTelemetry's messages, Prometheus' parser. All of it has to come
// to what explain says. The readers are export_perfetto_read.mjs and export_text_read.py.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/server.h"
#include "tests/support/tempdir.h"

using namespace ft::test;
namespace fs = std::filesystem;

namespace
{

const char *const kFormats[] = {"hlog", "folded", "speedscope.json", "otlp.jsonl", "prom", "pftrace"};

// A server that saves twice under load.
void MakeRun(const TempDir &dir)
{
	RedisOptions options;
	options.config = {"--enable-debug-command", "yes"};
	Redis server(options);
	server.command({"DEBUG", "POPULATE", "1000000", "key", "100"}); // so that fork() takes milliseconds
	Process recorder({program("forktail"), "record", "--pid", std::to_string(server.pid()), "-o",
			  dir.file("run/server.forktail")});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	INFO(recorder.err());
	REQUIRE(recorder.running());
	Process load({program("forktail"), "load", "-q", "-s", server.socket(), "--rate", "2000",
		      "--duration", "4s", "-c", "10", "-r", "20000", "-o", dir.file("run/load.forktail")});
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

// Exports what is at `path` to all formats, and holds them against explain.
void CheckFormats(const std::string &path, const std::string &to, const char *holds)
{
	fs::create_directories(to);
	Result explained = run({program("forktail"), "explain", path, "--json"});
	INFO(explained.err);
	REQUIRE(explained.status == 0);
	std::ofstream(to + "/explain.json") << explained.out;
	for (const char *format : kFormats) {
		Result r = run({program("forktail"), "export", path, "-o", to + "/run." + format});
		INFO(format << ": " << r.err);
		REQUIRE(r.status == 0);
	}
	const std::string tests = FORKTAIL_TESTS, python = FORKTAIL_PYTHON;
	Result text = run({python + "/bin/python", tests + "/export_text_read.py", to});
	INFO(text.out << text.err);
	CHECK(text.status == 0);
	Result trace = run({FORKTAIL_NODE, tests + "/export_perfetto_read.mjs", python, to + "/run.pftrace",
			    to + "/explain.json", holds});
	INFO(trace.out << trace.err);
	CHECK(trace.status == 0);
}

} // namespace

TEST_CASE("Every reader finds in an export what explain says")
{
	if (geteuid() != 0) {
		WARN("SKIPPED: recording needs root");
		return;
	}
	if (!fs::exists(FORKTAIL_PYTHON "/made")) {
		WARN("skipped: build-python/ has not been made; script/python makes it");
		return;
	}
	TempDir dir;
	fs::create_directories(dir.file("run"));
	MakeRun(dir);
	CheckFormats(dir.file("run"), dir.file("whole"), "fork");

	CheckFormats(dir.file("run/server.forktail"), dir.file("server"), "no requests");
	CheckFormats(dir.file("run/load.forktail"), dir.file("load"), "no server");

	const std::string server = dir.file("run/server.forktail");
	fs::resize_file(server, fs::file_size(server) * 2 / 3);
	CheckFormats(dir.file("run"), dir.file("cut"), "a cut recording");
}
