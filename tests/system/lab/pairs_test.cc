// SPDX-License-Identifier: MIT
// `forktail lab pairs` with real servers: what a side may be, that it is used in that side's runs only, that
// a killed comparison can be continued, and that `forktail diff` reads the result.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace
{

// One server and one recorded load, the only kind of scenario that pairs accepts.
const std::string kScenario =
    "title = \"A test\"\nabout = \"What a test needs.\"\nscale = { small = 1 }\n"
    "[constants]\nbytes = 10\nseconds = 1\n"
    "[[server]]\nname = \"redis\"\nkind = \"redis\"\n"
    "[[step]]\nname = \"run\"\nto = \"redis\"\nrecord = true\n"
    "load = \"--rate 1000 --duration {seconds}s -c 4 -r 1000 -d {bytes} --ratio 1:1\"\n";

struct PairsRun : ScenarioRun {
	PairsRun() : ScenarioRun(kScenario) {}

	void Begin(const std::vector<std::string> &more)
	{
		std::vector<std::string> argv = {program("forktail"), "lab", "pairs", file, "-o", run,
						 "--scale",	      "1"};
		argv.insert(argv.end(), more.begin(), more.end());
		LabProcess::Begin(argv);
	}
	int End(const std::vector<std::string> &more)
	{
		Begin(more);
		return lab->wait(Seconds(90)).value_or(-1);
	}
	std::string Point(const std::string &of) const { return run + "/" + of + "/points/point"; }
	Json RunJson(const std::string &of) const
	{
		return parse_json(read_file(Point(of) + "/run/run.json"));
	}
	void CheckNothingLeft() const
	{
		CHECK(Alive() == std::vector<std::string>{});
		CHECK(Left() == std::vector<std::string>{});
		CHECK(Changed() == std::vector<std::string>{});
	}
};

// The setting that the server itself reported.
std::string Setting(const Json &run, const std::string &name)
{
	INFO(run.dump());
	const Json &config = run.at("redis_config");
	return config.count(name) ? config.at(name).get<std::string>() : "";
}

} // namespace

TEST_CASE("pairs of a configuration file continue after a kill, in the drawn order")
{
	PairsRun pairs;
	const std::string config = pairs.dir.file("new.conf");
	write_file(config, "# a comment\nappendonly yes\n  appendfsync always\n\nsave \"3600 1\"\r\n");
	const std::vector<std::string> words = {"--new", config, "--pairs", "2", "--seed", "4"};
	pairs.Begin(words);
	const bool said = pairs.Says("pair 2 of 2") && pairs.Says("starting the recorder", "pair 2 of 2");
	pairs.lab->signal(SIGKILL);
	pairs.lab->wait(Seconds(20));
	INFO(pairs.lab->err());
	REQUIRE(said);
	CHECK(eventually([&] { return pairs.Alive().empty(); }, Seconds(60)));
	const std::string base = pairs.Point("base/pair-01") + "/point.json",
			  now = pairs.Point("new/pair-01") + "/point.json";
	REQUIRE((fs::exists(base) && fs::exists(now)));
	const auto base_time = fs::last_write_time(base), now_time = fs::last_write_time(now);
	const std::string order = read_file(pairs.run + "/order.txt");

	CHECK(pairs.End(words) == 3); // is there already
	CHECK(pairs.lab->err().find("--resume to continue in it") != std::string::npos);
	CHECK(pairs.End({"--resume", "--new", config, "--pairs", "2", "--seed", "5"}) == 3);
	CHECK(pairs.lab->err().find("another seed") != std::string::npos);
	std::vector<std::string> again = words;
	again.push_back("--resume");

	// A run whose lab was killed before it wrote run.json; with one more file, from another source.
	const std::string half =
	    pairs.run + (order.find("pair-02 base") == std::string::npos ? "/new/pair-02" : "/base/pair-02");
	fs::remove_all(half);
	fs::create_directories(half + "/points");
	write_file(half + "/scenario.txt.part-a1b2c3", "scale");
	write_file(half + "/mine", "kept");
	CHECK(pairs.End(again) == 3);
	CHECK(pairs.lab->err().find("was started with another scenario") != std::string::npos);
	CHECK(read_file(half + "/mine") == "kept");
	fs::remove(half + "/mine");
	const int status = pairs.End(again);
	INFO(pairs.lab->err());
	REQUIRE(status == 0);
	CHECK(pairs.lab->out() == "forktail diff " + pairs.run + "/base " + pairs.run + "/new\n");
	CHECK(fs::last_write_time(base) == base_time);
	CHECK(fs::last_write_time(now) == now_time);
	pairs.CheckNothingLeft();

	// The runs were made in the order of order.txt.
	CHECK(read_file(pairs.run + "/order.txt") == order);
	std::istringstream lines(order);
	std::string pair, first, second;
	int64_t last = 0;
	int count = 0;
	for (; lines >> pair >> first >> second; count++)
		for (const std::string &side : {first, second}) {
			const int64_t began = pairs.RunJson(side + "/" + pair)["started_unix"];
			CHECK(began > last);
			last = began;
		}
	CHECK(count == 2);

	for (const char *name : {"pair-01", "pair-02"}) {
		const Json plain = pairs.RunJson(std::string("base/") + name),
			   set = pairs.RunJson(std::string("new/") + name);
		CHECK(Setting(plain, "appendonly") == "no");
		CHECK(Setting(set, "appendonly") == "yes");
		CHECK(Setting(set, "appendfsync") == "always");
		CHECK(Setting(set, "save") == "3600 1");
	}
	Result diff = run({program("forktail"), "diff", pairs.run, "--json"});
	INFO(diff.err);
	CHECK(diff.status == 3); // two pairs cannot decide, and the output says so
	const Json said_of = parse_json(diff.out);
	CHECK(said_of["verdict"] == "inconclusive");
	CHECK(said_of["pairs"] == 2);
	CHECK(said_of["differs"].dump().find("appendfsync") != std::string::npos);
}

TEST_CASE("a server's program and a scenario's settings can be sides")
{
	PairsRun pairs;
	Result found = run({"sh", "-c", "command -v redis-server"});
	REQUIRE(found.status == 0);
	found.out.erase(found.out.find('\n'));
	const std::string other = pairs.dir.file("redis-other");
	fs::copy_file(fs::canonical(found.out), other);
	const int status = pairs.End({"--base", other, "--new", "bytes=300 maxmemory=123mb", "--pairs", "1"});
	INFO(pairs.lab->err());
	REQUIRE(status == 0);
	pairs.CheckNothingLeft();
	const Json base = pairs.RunJson("base/pair-01"), now = pairs.RunJson("new/pair-01");
	CHECK(base.dump().find(other) != std::string::npos);
	CHECK(now.dump().find(other) == std::string::npos);
	CHECK(base.dump().find("-d 10 ") != std::string::npos);
	CHECK(now.dump().find("-d 300 ") != std::string::npos);
	CHECK(Setting(base, "maxmemory") == "0");
	CHECK(Setting(now, "maxmemory") == std::to_string(123 << 20));
	// Both loads of a pair have the same keys and times.
	auto seed = [](const Json &of) {
		const std::string text = of.dump();
		const size_t at = text.find("--seed ");
		return at == std::string::npos ? "" : text.substr(at, text.find_first_of(" \"", at + 7) - at);
	};
	CHECK(!seed(base).empty());
	CHECK(seed(base) == seed(now));
	Result diff = run({program("forktail"), "diff", pairs.run});
	INFO(diff.err << diff.out);
	CHECK(diff.status == 0);
	CHECK(diff.out.find("advisory") == 0);
	CHECK(diff.out.find("maxmemory") != std::string::npos);
}

TEST_CASE("pairs that cannot be made are refused before any run")
{
	const std::string sweep = "[[sweep]]\nname = \"n\"\nvalues = [1, 2]\n";
	struct {
		std::string toml;
		std::vector<std::string> words;
		const char *says;
	} bad[] = {
	    {kScenario,
	     {"--new", "/nowhere/redis-server"},
	     "/nowhere/redis-server is not a program, a file or a setting NAME=VALUE"},
	    {kScenario, {"--new", "maxmemory 'no end"}, "a quote is not closed"},
	    {kScenario + sweep, {}, "pairs need one point and one recorded load, but it has 2 and 1"},
	    {kScenario + "[[server]]\nname = \"second\"\nkind = \"redis\"\n",
	     {"--new", "hz=50"},
	     "hz needs a scenario with one server, and s has 2"},
	};
	for (const auto &one : bad) {
		PairsRun pairs;
		write_file(pairs.file, one.toml);
		INFO(one.says);
		CHECK(pairs.End(one.words) == 2);
		const std::string said = pairs.lab->err();
		INFO(said);
		CHECK(said.find(one.says) != std::string::npos);
		CHECK(std::count(said.begin(), said.end(), '\n') == 1);
		CHECK_FALSE(fs::exists(pairs.run));
		pairs.CheckNothingLeft();
	}
}
