// SPDX-License-Identifier: MIT
// Untrusted text in recordings: all of it is printable once a run is read, and it cannot control a terminal
// in any output.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"

#include <cstring>

#include "analysis/explain.h"
#include "analysis/text.h"
#include "analysis/timeline.h"
#include "common/json.h"
#include "common/text.h"

using namespace forktail::analysis;
using namespace forktail::common;
using forktail::test::parse_json;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

constexpr uint64_t kStart = 5'000'000'000, kMs = 1'000'000;
// As JSON and as bytes: clipboard access, a newline, a byte that is no UTF-8 (impossible in JSON), reversed
// text.
const std::string kInJson = R"(e\u001b]52;c;QQ==\u0007\n\u202e\u009b31m)",
		  kRead = R"(e\x1b]52;c;QQ==\x07\x0a\u202e\x9b31m)";
const char kBytes[16] = "\x1b]52;QQ\a\n\xff\xe2\x80\xae"; // 14 bytes and a 0
const std::string kBytesRead = R"(\x1b]52;QQ\x07\x0a\xff\u202e)";

std::string Evil(std::string json)
{
	for (size_t at; (at = json.find('%')) != std::string::npos;)
		json.replace(at, 1, kInJson);
	return json;
}

void WriteHostile(const std::string &path)
{
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, path.c_str(),
			       Evil(R"({"program":"forktail-record","host":"%","kernel":"%","boot_id":"b",
		"argv":["%"],"min_span_ns":20000,"start_ns":5000000000,"%":1,
		"targets":[{"pid":100,"comm":"%","cmdline":"%","listens":["unix:/%"]}],
		"missing":[{"what":"%","why":"%"}],"block_devices":{"8:0":"%"},"syscalls":{"0":"%"}})")
				   .c_str()) == 0);
	ft_thread t = {};
	t.start_ns = kStart;
	t.end_ns = kStart + 1000 * kMs;
	t.tid = t.tgid = 100;
	t.flags = FT_THREAD_MAIN;
	memcpy(t.comm.raw, kBytes, sizeof t.comm.raw);
	memcpy(t.role.raw, kBytes, sizeof kBytes);
	REQUIRE(ft_writer_record(w, FT_BLOCK_THREAD, &t) == 0);
	ft_span s = {};
	s.start_ns = kStart + 500 * kMs;
	s.duration_ns = s.runnable_ns = 60 * kMs;
	s.tid = 100;
	s.owner = FT_RUN_QUEUE;
	s.off_cpu = 1;
	s.queue_cpu = 1;
	REQUIRE(ft_writer_record(w, FT_BLOCK_SPAN, &s) == 0);
	ft_cpu_slice slice = {kStart + 500 * kMs, kStart + 560 * kMs, 7, 0, 0, {}};
	memcpy(slice.comm.raw, kBytes, sizeof slice.comm.raw);
	REQUIRE(ft_writer_record(w, FT_BLOCK_CPU_SLICE, &slice) == 0);
	s.start_ns -= 10 * kMs;
	s.duration_ns = s.blocked_ns = 10 * kMs;
	s.runnable_ns = 0;
	s.owner = FT_FILE_WRITE;
	s.queue_cpu = 0;
	s.detail = 9;
	REQUIRE(ft_writer_record(w, FT_BLOCK_SPAN, &s) == 0);
	s = {};
	s.start_ns = kStart + 490 * kMs;
	s.duration_ns = 70 * kMs;
	s.tid = 100;
	s.owner = FT_ITERATION;
	REQUIRE(ft_writer_record(w, FT_BLOCK_SPAN, &s) == 0);
	ft_io io = {};
	io.start_ns = kStart + 495 * kMs;
	io.duration_ns = 4 * kMs;
	io.bytes = 1 << 20;
	io.write = 1;
	memcpy(io.comm.raw, kBytes, sizeof io.comm.raw);
	REQUIRE(ft_writer_record(w, FT_BLOCK_IO, &io) == 0);
	auto json = [&](ft_block_kind kind, const char *text) {
		REQUIRE(ft_writer_json(w, kind, Evil(text).c_str()) == 0);
	};
	json(FT_BLOCK_DETAIL, R"({"id":9,"name":"%","stack":["%"]})");
	json(FT_BLOCK_STACK, R"({"id":5,"program":"%","frames":[["%","%"],["",["%"]]],"kernel":["%"]})");
	json(FT_BLOCK_SERIES, R"({"id":3,"name":"%","unit":"%","labels":{"%":"%"}})");
	json(FT_BLOCK_NOTE, R"({"t_ns":5000000000,"kind":"cpu-quota","pid":100,"cgroup":"/%","quota_us":5})");
	json(FT_BLOCK_NOTE,
	     R"({"t_ns":5490000000,"kind":"slowlog","duration_us":70000,"command":["%","%"]})");
	json(FT_BLOCK_COST, R"({"programs":[{"name":"%"}]})");
	REQUIRE(ft_writer_close(w, Evil(R"({"end_ns":6000000000,"reason":"%"})").c_str()) == 0);
}

void CheckVisible(const std::string &text)
{
	std::string lines = VisibleLines(text);
	CHECK(lines == text);
}

} // namespace

TEST_CASE("names with terminal control sequences are plain text once a run is read")
{
	TempDir dir;
	WriteHostile(dir.file("server.forktail"));
	write_file(dir.file("run.json"), Evil(R"({"host":"%","versions":{"%":"%"},"commands":["%"]})"));
	Run run;
	std::string error;
	REQUIRE(LoadRun(dir.path(), &run, &error));
	const RecordingFile &f = run.files.at(0);
	CHECK(f.host == kRead);
	CHECK(f.argv == std::vector<std::string>{kRead});
	CHECK(f.end_reason == kRead);
	CHECK(run.targets.at(0).comm == kRead);
	CHECK(run.targets.at(0).cmdline == kRead);
	CHECK(run.targets.at(0).listens.at(0) == "unix:/" + kRead);
	CHECK(run.missing.at(0).why == kRead);
	CHECK(DeviceName(run, 8 << 20) == kRead);
	CHECK(SyscallName(run, 0) == kRead);
	CHECK(run.threads.at(0).comm == kBytesRead);
	CHECK(run.threads.at(0).role == kBytesRead);
	bool holder = false, file = false;
	for (const ft_span &span : run.spans)
		holder |= HolderOf(run, span).name == kBytesRead;
	for (const Detail &d : run.details)
		file |= d.name == kRead && d.stack == std::vector<std::string>{kRead};
	CHECK(holder);
	CHECK(file);
	const Stack &stack = run.stacks.at(1);
	CHECK(stack.program == kRead);
	CHECK(stack.frames.at(0).function == kRead);
	CHECK(stack.frames.at(0).module == kRead);
	CHECK(stack.frames.at(1).module == "[\"" + [] {
		std::string escaped = kRead;
		for (size_t at = 0; (at = escaped.find('\\', at)) != std::string::npos; at += 2)
			escaped.insert(at, "\\");
		return escaped;
	}() + "\"]");
	CHECK(stack.kernel.at(0) == kRead);
	CHECK(run.series.at(0).labels.at(kRead) == kRead);
	CHECK(run.quotas.at(0).cgroup == "/" + kRead);
	CHECK(run.cost.programs.at(0).name == kRead);
	CHECK(parse_json(run.reports.at(0).text)["command"][0] == kRead);
	CHECK(run.info.versions.at(kRead) == kRead);
}

TEST_CASE("output about such a run is printable, as text and as JSON")
{
	TempDir dir;
	WriteHostile(dir.file("server.forktail"));
	Explained e;
	std::string error;
	int status;
	REQUIRE(ExplainRun(dir.path(), {}, &e, &error, &status));
	const std::string text = ExplainText(e, {}), json = ExplainJson(e);
	CheckVisible(text);
	CheckVisible(json);
	CHECK(text.find(kBytesRead) != std::string::npos);
	CHECK(text.find(kRead) != std::string::npos);
	CHECK(parse_json(json).is_object());
}

TEST_CASE("a run's own path and damaged files are named in printable text")
{
	TempDir dir;
	const std::string bad = dir.file("a\x1b[2J.forktail"), shown = "a\\x1b[2J.forktail";
	write_file(bad, "no recording");
	WriteHostile(dir.file("b.forktail"));
	Run run;
	std::string error;
	REQUIRE(LoadRun(dir.path(), &run, &error));
	REQUIRE(!run.warnings.empty());
	CHECK(run.warnings.at(0).find(shown) != std::string::npos);
	for (const std::string &warning : run.warnings)
		CheckVisible(warning);
	Run none;
	CHECK(!LoadRun(bad, &none, &error));
	CHECK(error.find(shown) != std::string::npos);
	CHECK(!LoadRun(dir.file("\x1b[2J"), &none, &error));
	CheckVisible(error);
}

TEST_CASE("endlessly nested JSON is refused and not read")
{
	std::string deep(200'000, '[');
	Json j = ParseVisible({"{\"near\":1,\"far\":" + deep + std::string(deep.size(), ']') + "}"});
	CHECK(j["near"] == 1);
	CHECK(j.dump().size() < 200);
	CHECK(ParseVisibleObject({"[1]"}).empty());
	CHECK(ParseVisible({"{\"a\xff\":1}"}).is_discarded());
}

TEST_CASE("lines stay lines")
{
	CHECK(VisibleLines("a\nb\x1b\n\n") == "a\nb\\x1b\n\n");
	CHECK(VisibleLines("") == "");
	CHECK(VisibleLines("\r\n") == "\\x0d\n");
}
