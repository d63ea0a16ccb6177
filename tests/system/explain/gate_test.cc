// SPDX-License-Identifier: MIT
// docs/guides/ci.md exactly as written: its script measures a real server, its limits are checked, and the
// commands of its two pipelines are run. Then the gate's report on the run is compared with explain's and the
// load generator's.
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

const std::string kPage = read_file(FORKTAIL_SOURCE_DIR "/docs/guides/ci.md");

std::vector<std::string> LinesOf(const std::string &text)
{
	std::vector<std::string> lines;
	std::stringstream in(text);
	for (std::string line; std::getline(in, line);)
		lines.push_back(line);
	return lines;
}

// The page's blocks in a language, in order.
std::vector<std::string> Blocks(const std::string &language)
{
	std::vector<std::string> blocks;
	bool inside = false;
	for (const std::string &line : LinesOf(kPage)) {
		if (line == "```" + language) {
			blocks.emplace_back();
			inside = true;
		} else if (line == "```") {
			inside = false;
		} else if (inside) {
			blocks.back() += line + "\n";
		}
	}
	return blocks;
}

// The commands of a pipeline that belong to this project.
std::vector<std::string> Commands(const std::string &pipeline)
{
	std::vector<std::string> commands;
	for (const std::string &line : LinesOf(pipeline))
		for (const char *begin : {"sh ci/", "forktail gate "})
			if (size_t at = line.find(begin); at != std::string::npos)
				commands.push_back(line.substr(at));
	return commands;
}

struct Project {
	TempDir dir;

	Project()
	{
		REQUIRE(Blocks("toml").size() == 1);
		REQUIRE(Blocks("sh").size() == 1);
		std::filesystem::create_directory(dir.file("ci"));
		write_file(dir.file("ci/limits.toml"), Blocks("toml")[0]);
		write_file(dir.file("ci/latency.sh"), Blocks("sh")[0]);
	}
	Result Run(const std::vector<std::string> &argv) const
	{
		const std::string programs = program("forktail");
		ProcessOptions options;
		options.directory = dir.path();
		options.environment = {
		    {"PATH", programs.substr(0, programs.rfind('/')) + ":" + getenv("PATH")}};
		return run(argv, Seconds(60), options);
	}
	Result Gate(std::vector<std::string> limits) const
	{
		limits.insert(limits.begin(), {"forktail", "gate", "run"});
		return Run(limits);
	}
};

void CheckAgainstExplain(const Project &project)
{
	const Json explain = parse_json(
	    project.Run({"forktail", "explain", "run", "--json", "--requests", "--slow", "100us"}).out);
	const Json load = parse_json(read_file(project.dir.file("run/load.json")))["runs"][0];
	double longest = 0;
	for (const Json &r : explain["slow_requests"])
		for (const Json &part : r["parts"])
			if (part["cause"] == "fork")
				longest = std::max(longest, part["direct_ns"].get<double>() +
								part["queued_ns"].get<double>());
	CHECK(longest > 0); // the script makes the server fork
	const Json get = load["operations"]["GET"], set = load["operations"]["SET"];
	const std::vector<std::pair<std::string, double>> expected = {
	    {"p99.9", explain["requests"]["latency_ns"]["p99.9"]},
	    {"p50", load["total"]["latency_ns"]["p50"]},
	    {"p95", load["total"]["latency_ns"]["p95"]},
	    {"min", load["total"]["latency_ns"]["min"]},
	    {"GET.p99.9", get["latency_ns"]["p99.9"]},
	    {"set.p99", set["latency_ns"]["p99"]},
	    {"SET.max", set["latency_ns"]["max"]},
	    {"GET.requests", get["requests"]},
	    {"requests", explain["requests"]["count"]},
	    {"episodes", static_cast<double>(explain["episodes"].size())},
	    {"fork.max", longest}};
	std::vector<std::string> words = {"--slow", "100us", "--json"};
	for (const auto &[figure, value] : expected)
		words.push_back(
		    figure + (figure == "episodes" || figure.ends_with("requests") ? " >= 0" : " < 1000s"));
	const Json gate = parse_json(project.Gate(words).out);
	REQUIRE(gate["limits"].size() == expected.size());
	for (size_t i = 0; i < expected.size(); i++) {
		INFO(expected[i].first);
		CHECK(gate["limits"][i]["kept"] == true);
		CHECK(gate["limits"][i]["value"] == expected[i].second);
	}
}

// explain's answer to the run. The gate has the same one.
std::string Answer(const Project &project)
{
	const Json explain = parse_json(project.Run({"forktail", "explain", "run", "--json"}).out);
	const Json gate = parse_json(project.Gate({"p50 < 100s", "--json"}).out);
	const std::string answer = explain["answer"];
	CHECK(answer.size() > 0);
	CHECK(gate["answer"] == answer);
	return answer;
}

void CheckStatuses(const Project &project)
{
	Result r = project.Gate({"p99.9 < 100s", "errors = 0", "requests = 12000"});
	CHECK(r.status == 0);
	CHECK(r.out.find("ok   p99.9 is ") == 0);
	CHECK(r.out.find("All 3 limits are met.\n") != std::string::npos);
	r = project.Gate({"p50 < 0.001us", "errors = 0"});
	CHECK(r.status == 1);
	const std::vector<std::string> lines = LinesOf(r.out);
	REQUIRE(lines.size() >= 3);
	CHECK(lines[0] == Answer(project)); // the reason comes first
	CHECK(lines[1].find("FAIL p50 is ") == 0);
	CHECK(lines[2].find("ok   errors is 0") == 0);
	r = project.Gate({"errors = 0", "p50 5ms"});
	CHECK(r.status == 2);
	CHECK(r.out.empty());
	r = project.Gate({"NIX.p99 < 1s", "errors = 0"});
	CHECK(r.status == 3);
	CHECK(r.out.find("NONE NIX p99 is unknown") == 0);
	CHECK(project.Gate({"p99 no worse than BASE"}).status == 2);
	CHECK(project.Gate({}).status == 2);
	CHECK(project.Gate({"no worse than BASE", "--base", "run"}).status == 0);
	CHECK(project.Gate({"p99 < 100s", "--base", "nowhere"}).status == 3);
	CHECK(project.Gate({"p99 < 100s", "--junit", "no/such/place.xml"}).status == 3);
	r = project.Run({"forktail", "gate", "nowhere", "p99 < 1s", "--junit", "none.xml"});
	CHECK(r.status == 3);
	CHECK(read_file(project.dir.file("none.xml")).find("<error message=\"no run at nowhere") !=
	      std::string::npos);
}

void CheckExplain(const Project &project)
{
	const std::vector<std::string> explain = {"forktail", "explain", "run"};
	auto with = [&](const std::vector<std::string> &more) {
		std::vector<std::string> argv = explain;
		argv.insert(argv.end(), more.begin(), more.end());
		return project.Run(argv);
	};
	const Result plain = with({}), kept = with({"--fail-if", "p99>100s", "--fail-if", "errors>0"}),
		     broken = with({"--fail-if", "p50>0.001us", "--fail-if", "errors>0"});
	CHECK(plain.status == 0);
	CHECK(kept.status == 0);
	CHECK(kept.err.empty());
	CHECK(broken.status == 1);
	CHECK(broken.out == plain.out);
	CHECK(broken.err.find("forktail: p50 is ") == 0);
	CHECK(std::count(broken.err.begin(), broken.err.end(), '\n') == 1);
	CHECK(with({"--fail-if", "p50"}).status == 2);
	CHECK(with({"--fail-if", "p50 no worse than BASE"}).status == 2);
	CHECK(with({"--fail-if", "NIX.p50>1ms"}).status == 3);
}

} // namespace

TEST_CASE("docs/guides/ci.md: its script, its limits and its pipelines, and the gate's report on the run")
{
	Project project;
	const std::vector<std::string> pipelines = Blocks("yaml");
	REQUIRE(pipelines.size() == 2);
	const std::vector<std::string> commands = Commands(pipelines[0]);
	REQUIRE(commands.size() == 2);
	CHECK(commands == Commands(pipelines[1])); // both pipelines have the same commands

	const Result measured = project.Run({"sh", "-c", commands[0]});
	INFO(measured.err);
	REQUIRE(measured.status == 0);
	const Result gated = project.Run({"sh", "-c", commands[1]});
	INFO(gated.out << gated.err);
	CHECK((gated.status == 0 || gated.status == 1)); // the speed of this machine is not tested
	const std::vector<std::string> file = LinesOf(Blocks("toml")[0]);
	const size_t limits = file.size() - 3; // slow, and the list's two brackets
	const std::string junit = read_file(project.dir.file("gate.xml"));
	CHECK(junit.find("tests=\"" + std::to_string(limits) + "\"") != std::string::npos);
	CHECK(junit.find("errors=\"0\"") != std::string::npos);
	CHECK(gated.out.find("NONE") == std::string::npos);
	CHECK(gated.out.find("snapshots don't stall: fork max is ") != std::string::npos);

	CheckAgainstExplain(project);
	CheckStatuses(project);
	CheckExplain(project);
}
