// SPDX-License-Identifier: MIT
// The page as a file: complete, with its data, and no name from the run can end a script element.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "analysis/report.h"
#include "analysis/report/page_data.h"
#include "analysis/text.h"
#include "common/format.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/sample_explanation.h"

using namespace forktail::analysis;
using namespace forktail::analysis::report;

namespace
{

struct TemporaryFile {
	std::string path = "/tmp/forktail-report-" + std::to_string(getpid()) + ".html";
	~TemporaryFile() { remove(path.c_str()); }
};

std::string ReadAll(const std::string &path)
{
	std::ifstream in(path, std::ios::binary);
	std::ostringstream text;
	text << in.rdbuf();
	return text.str();
}

size_t Count(const std::string &text, const std::string &what)
{
	size_t n = 0;
	for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
		n++;
	return n;
}

// The text of the script element with this id.
std::string Element(const std::string &page, const std::string &id)
{
	size_t at = page.find("id=\"" + id + "\">");
	REQUIRE(at != std::string::npos);
	at = page.find('>', at) + 1;
	return page.substr(at, page.find("</script", at) - at);
}

SampleSize Small()
{
	SampleSize size;
	size.seconds = 5;
	size.rate = 2000;
	size.spans = 300;
	return size;
}

} // namespace

TEST_CASE("base64 as RFC 4648 has it")
{
	CHECK(Base64("") == "");
	CHECK(Base64("f") == "Zg==");
	CHECK(Base64("fo") == "Zm8=");
	CHECK(Base64("foo") == "Zm9v");
	CHECK(Base64("foob") == "Zm9vYg==");
	CHECK(Base64(std::string("\0\xff\xfe\x80", 4)) == "AP/+gA==");
}

TEST_CASE("arrays are aligned, by type")
{
	ReportArrays arrays;
	arrays.Add("a", std::vector<uint8_t>{1, 2, 3});
	arrays.Add("b", std::vector<uint32_t>{4});
	arrays.Add("c", std::vector<float>{});
	CHECK(arrays.table["a"] == nlohmann::json({"u8", 0, 3}));
	CHECK(arrays.table["b"] == nlohmann::json({"u32", 4, 1}));
	CHECK(arrays.table["c"] == nlohmann::json({"f32", 8, 0}));
	CHECK(arrays.bytes.size() == 8);
	CHECK(arrays.bytes[4] == 4);
}

TEST_CASE("a page is complete and carries the run")
{
	TemporaryFile file;
	std::string error;
	Explained e = SampleExplanation(Small());
	REQUIRE(WriteReport(e, e.reading.get(), file.path, &error));
	std::string page = ReadAll(file.path);
	CHECK(page.rfind("<!doctype html>", 0) == 0);
	CHECK(page.find("</html>") != std::string::npos);
	CHECK(page.find("@DATA@") == std::string::npos);
	CHECK(page.find("Permission is hereby granted") != std::string::npos);

	nlohmann::json run = forktail::test::parse_json(Element(page, "run"));
	CHECK(run["count"] == e.blame.count);
	CHECK(run["slow_count"] == e.blame.slow.size());
	CHECK(run["latency_ns"]["p99.9"] == e.blame.latencies.p99_9);
	CHECK(run["episodes"].size() == e.episodes.size());
	CHECK(run["begin_s"] == 0.0);
	CHECK(run["end_s"] == 5.0);
	CHECK(page.find("<li>" + e.notes[0] + "</li>") != std::string::npos);
	CHECK(run["hops"].empty()); // one thread
	// Arrays fill their element: the last one ends within four bytes of the buffer's end.
	size_t end = 0;
	for (const auto &[name, array] : run["arrays"].items()) {
		size_t width = array[0] == "u8" ? 1 : array[0] == "u16" ? 2 : 4;
		end = std::max(end, array[1].get<size_t>() + width * array[2].get<size_t>());
	}
	CHECK(Element(page, "arrays").size() == (end + 2) / 3 * 4);
}

TEST_CASE("the answer, the figures, the causes and the worst episodes need no script")
{
	TemporaryFile file;
	std::string error;
	Explained e = SampleExplanation(Small());
	e.run.warnings = {"one", "two", "<three> & \"four\"", "five"};
	e.run.missing = {{"soft interrupts", "--light was given"}};
	REQUIRE(WriteReport(e, e.reading.get(), file.path, &error));
	const std::string page = ReadAll(file.path), shown = page.substr(0, page.find("<script"));
	auto has = [&](const std::string &text) { return shown.find(text) != std::string::npos; };
	CHECK(has(Escaped(AnswerText(e)) + "</p>"));
	REQUIRE(e.lead.without_ns);
	CHECK(has(std::string(e.lead.figure->name) + " without " + CauseName(e.lead.causes[0]) +
		  "</span><b>" + forktail::common::FormatDuration(e.lead.without_ns)));
	CHECK(Count(shown, "class=\"cause-name\"") == e.blame.causes.size());
	for (const CauseRow &row : e.blame.causes)
		CHECK(has("data-name=\"" + std::string(CauseName(row.cause)) + '"'));
	CHECK(Count(shown, ", slowest ") == std::min<size_t>(5, e.episodes.size()));
	CHECK(has("a file named &lt;/script&gt;"));
	CHECK(has("<li>not recorded: soft interrupts: --light was given</li>"));
	CHECK(has("3 more notes</summary><ul>\n<li>&lt;three&gt; &amp; &quot;four&quot;</li>"));
	CHECK_FALSE(has("@HEADER@"));
}

TEST_CASE("the path of requests is on the page if it has more than one thread")
{
	TemporaryFile file;
	std::string error;
	Explained e = SampleExplanation(Small());
	Thread helper = e.run.threads[e.reading->timelines[0].thread];
	helper.tid = helper.tgid + 1;
	helper.comm = "io_thd_1";
	e.run.threads.push_back(helper);
	e.reading->timelines.push_back(e.reading->timelines[0]);
	e.reading->timelines[1].thread = static_cast<uint32_t>(e.run.threads.size() - 1);
	e.hop_threads = HopThreads(e.reading->timelines);
	e.blame.hops = {{0, false, 10, 3, 900, 0.9, {{Cause::Fork, 800}, {Cause::ServerBusy, 100}}},
			{1, false, 0, 1, 100, 0.1, {{Cause::Stopped, 100}}}};
	REQUIRE(WriteReport(e, e.reading.get(), file.path, &error));
	nlohmann::json hops = forktail::test::parse_json(Element(ReadAll(file.path), "run"))["hops"];
	REQUIRE(hops.size() == 2);
	CHECK(hops[0]["name"].get<std::string>().find(", main thread") != std::string::npos);
	CHECK(hops[0]["causes"][0]["cause"] == Index(Cause::Fork));
	CHECK(hops[1]["name"].get<std::string>().find(", io_thd_1") != std::string::npos);
	CHECK(hops[1]["role"] == "thread");
	CHECK(hops[1]["time_ns"] == 100);
}

TEST_CASE("a page references nothing outside itself")
{
	TemporaryFile file;
	std::string error;
	const Explained e = SampleExplanation(Small());
	REQUIRE(WriteReport(e, e.reading.get(), file.path, &error));
	std::string page = ReadAll(file.path);
	CHECK(Count(page, " src=") == 0);
	CHECK(page.find("@import") == std::string::npos);
	CHECK(page.find("url(") == std::string::npos);
	CHECK(Count(page, " href=") == Count(page, "<use href=\"#mark-") + 1); // the empty icon
	CHECK(page.find("href=\"data:,\"") != std::string::npos);
	CHECK(page.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("a hostile name ends no script")
{
	const std::string hostile = "</script><script>alert(1)</script><!--\xff]]>";
	Explained e = SampleExplanation(Small());
	e.run.targets[0].comm = hostile;
	e.run.targets[0].cmdline = hostile;
	e.run.info.host = hostile;
	e.run.threads[0].role = hostile;
	e.run.ops[0] = hostile;
	e.run.warnings = {hostile};
	e.run.ios.push_back({e.run.start_ns, 1000, 0, 4096, 1 << 20, 1, 0, 0, 0, "</script><b>"});
	for (Series &s : e.run.series)
		for (auto &[name, value] : s.labels)
			value = hostile;
	TemporaryFile file;
	std::string error;
	REQUIRE(WriteReport(e, e.reading.get(), file.path, &error));
	std::string page = ReadAll(file.path);
	CHECK(Count(page, "</script") == 4); // run, arrays, uPlot, ours
	CHECK(Count(page, "<!--") == 2);     // the template's own comments
	CHECK(page.find("alert(1)</script") == std::string::npos);
	CHECK(page.find("<title>&lt;/script&gt;&lt;script&gt;alert(1)") != std::string::npos);
	nlohmann::json run = forktail::test::parse_json(Element(page, "run"));
	CHECK(run["ops"][0] == "</script><script>alert(1)</script><!--\xef\xbf\xbd]]>");
}

TEST_CASE("an empty explanation still makes a page")
{
	TemporaryFile file;
	std::string error;
	Explained e;
	e.serving = {-1};
	e.reading->timelines.resize(1);
	IndexRun(&e.run);
	REQUIRE(WriteReport(e, e.reading.get(), file.path, &error));
	nlohmann::json run = forktail::test::parse_json(Element(ReadAll(file.path), "run"));
	CHECK(run["slow_count"] == 0);
	CHECK(run["lanes"].empty());
}

TEST_CASE("an unwritable page is an error and leaves nothing")
{
	std::string error;
	Explained e = SampleExplanation(Small());
	CHECK_FALSE(WriteReport(e, e.reading.get(), "/nonexistent/report.html", &error));
	CHECK(error.find("/nonexistent/report.html") != std::string::npos);
	CHECK(error.find("No such file") != std::string::npos);

	if (access("/dev/full", W_OK) == 0) {
		// A link, so that removing the incomplete page cannot remove the device.
		std::string link = "/tmp/forktail-full-" + std::to_string(getpid());
		REQUIRE(symlink("/dev/full", link.c_str()) == 0);
		error.clear();
		CHECK_FALSE(WriteReport(e, e.reading.get(), link, &error));
		CHECK(error.find("No space left") != std::string::npos);
		// The existing file is unchanged, and there is no new file.
		CHECK(std::filesystem::read_symlink(link) == "/dev/full");
		for (const auto &entry : std::filesystem::directory_iterator("/tmp"))
			CHECK((entry.path() == link || entry.path().string().rfind(link, 0) != 0));
		std::filesystem::remove(link);
	}
}
