// SPDX-License-Identifier: MIT
// `forktail diff` on real runs of a real server: what differs, what changed, and why. Times are not tested,
// only that they are reported.
#include <algorithm>
#include <csignal>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

// A short run of a server with this many keys, which takes a snapshot during it.
void MakeRun(const std::string &run, int keys, const std::string &rate)
{
	Redis server;
	REQUIRE(forktail::test::run({program("forktail"), "load", "-q", "-s", server.socket(), "--fill",
				     std::to_string(keys), "-d", "100"})
		    .status == 0);
	Process recorder({program("forktail"), "record", "--pid", std::to_string(server.pid()), "-o",
			  run + "/server.forktail"});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   Seconds(60)));
	INFO(recorder.err());
	REQUIRE(recorder.running());
	Process load({program("forktail"), "load", "-q", "-s", server.socket(), "--rate", rate, "--duration",
		      "3", "-c", "8", "-r", std::to_string(keys), "-o", run + "/load.forktail"});
	REQUIRE(server.command({"BGSAVE"}).find("Background") != std::string::npos);
	INFO(load.err());
	REQUIRE(load.wait(Seconds(60)) == 0);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(Seconds(60)) == 0);
}

std::string ReadAll(const std::string &path)
{
	std::ifstream in(path);
	return {std::istreambuf_iterator<char>(in), {}};
}

Result Diff(std::vector<std::string> words)
{
	words.insert(words.begin(), {program("forktail"), "diff"});
	return run(words);
}

} // namespace

TEST_CASE("two real runs that differ, in every form; and runs that cannot be compared")
{
	TempDir dir;
	std::string a = dir.file("a"), b = dir.file("b"), server = dir.file("server");
	REQUIRE(run({"mkdir", a, b, server}).status == 0);
	MakeRun(a, 1000, "2000");
	MakeRun(b, 600'000, "1000");

	std::string junit = dir.file("diff.xml");
	const std::string page = dir.file("diff.html");
	Result r = Diff({a, b, "--json", "--junit", junit, "--html", page});
	INFO(r.err);
	REQUIRE(r.status == 0); // one pair alone fails nothing
	Json json = parse_json(r.out);
	CHECK(json["verdict"] == "advisory");
	CHECK(json["fork_longest"]["a"].get<double>() > 0);
	CHECK(json["fork_longest"]["b"].get<double>() > json["fork_longest"]["a"].get<double>());
	CHECK(json["rss"]["change"].get<double>() > 30e6);
	CHECK(json["throughput"]["b"].get<double>() < json["throughput"]["a"].get<double>());
	std::string differs = json["differs"].dump();
	INFO(differs);
	CHECK(differs.find("\"rate\"") != std::string::npos);
	CHECK(differs.find("kernel") == std::string::npos);
	CHECK(ReadAll(junit).find("<skipped") != std::string::npos);
	CHECK(ReadAll(page).find("</html>") != std::string::npos);
	// The same percentiles as explain's.
	Result explained = run({program("forktail"), "explain", a, "--json"});
	CHECK(parse_json(explained.out)["requests"]["latency_ns"]["p99.9"] ==
	      json["a"]["runs"][0]["p99.9_ns"]);

	Result text = Diff({a, b}), markdown = Diff({a, b, "--markdown"});
	CHECK(text.out.find("advisory: only one pair of runs") == 0);
	CHECK(text.out.find("load: rate") != std::string::npos);
	CHECK(markdown.out.find("| p99.9 |") != std::string::npos);
	CHECK(markdown.out.find("**forktail diff: advisory**") == 0);
	CHECK(Diff({a, "and", b}).out == text.out);

	REQUIRE(run({"cp", a + "/server.forktail", server}).status == 0);
	struct {
		std::vector<std::string> words;
		int status;
		const char *says;
	} bad[] = {
	    {{a, a}, 2, "on both sides"},
	    {{a, dir.file("none")}, 2, " does not exist"},
	    {{a}, 2, " does not exist"},
	    {{a, server}, 3, "no answered requests"},
	    {{a, b, "--slow", "p99"}, 2, "a duration"},
	    {{a, b, "--allow", "much"}, 2, "a percentage"},
	    {{a, b, "--alike", a}, 2, "needs more to measure"},
	    {{a, b, "--junit", dir.file("no/such/file.xml")}, 3, "file.xml"},
	    {{a, b, "--html", dir.file("no/such/page.html")}, 3, "page.html"},
	};
	for (const auto &one : bad) {
		Result failed = Diff(one.words);
		INFO(failed.err);
		CHECK(failed.status == one.status);
		CHECK(failed.err.find(one.says) != std::string::npos);
		CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') == 1);
		CHECK(failed.out.empty());
	}
}
