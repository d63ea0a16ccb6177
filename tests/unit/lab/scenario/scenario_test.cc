// SPDX-License-Identifier: MIT
// Scenario files: every error is refused with its line and its reason. Templates, scales and points are
// computed as documented in docs/reference/lab-and-scenarios.md.
#include <sstream>

#include "common/text.h"
#include "lab/run/experiment.h"
#include "lab/scenario/scenario.h"
#include "lab/scenario/scenario_check.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::lab;
using namespace forktail::test;

namespace
{

// Its line numbers matter: an error is put into one of its lines.
const char *const kGood = R"(title = "T"
about = "A"
scale = { tiny = 0.1 }
constants = { clients = 50 }
[sizes]
keys = { full = 1000, least = 200 }
[[sweep]]
name = "listen"
values = ["unix", "tcp"]
also.word = ["u", "t"]
[swap]
kind = "file"
size = "64MiB"
only = { listen = "tcp" }
[[server]]
name = "redis"
kind = "redis"
count = "2"
listen = "{listen}"
[[server]]
name = "proxy"
kind = "nutcracker"
of = "redis"
[[step]]
name = "fill"
to = "redis"
load = "--fill {keys}"
[[step]]
name = "run"
to = "proxy"
load = "-n {keys} --duration 2s"
[[step.event]]
at = "50%"
ask = "BGSAVE"
server = "redis1"
[[step.log]]
name = "said"
server = "redis"
text = "Background saving started"
[[step]]
wait = "10ms"
[[table]]
title = "Rates"
by = "listen"
[[table.column]]
title = "gain"
value = "run.rps / base.run.rps"
against = { listen = "unix" }
[[chart]]
title = "C"
x = "listen"
[[chart.series]]
title = "rps"
value = "run.rps"
)";

std::string WithLine(int number, const std::string &line)
{
	std::istringstream in(kGood);
	std::string text, old;
	for (int i = 1; std::getline(in, old); i++)
		text += (i == number ? line : old) + "\n";
	return text;
}

// "LINE: reason", or "" for a file without errors.
std::string MistakeIn(const std::string &text)
{
	TempDir dir;
	Scenario scenario;
	std::string path = dir.file("s.toml"), error;
	write_file(path, text);
	if (ReadScenario(path, &scenario, &error))
		return "";
	INFO(error);
	REQUIRE(error.rfind(path + ":", 0) == 0);
	return error.substr(path.size() + 1);
}

struct Mistake {
	int line; // the replaced text
	const char *by;
	const char *said;
};

const Mistake kMistakes[] = {
    {1, "", "1: a scenario needs `title`"},
    {1, "title = true", "1: `title` must be a string or a number"},
    {1, "title = \"T\"\ncolour = 1",
     "2: a scenario has no `colour`; it has about, chart, constants, fit, print, question, report, scale, "
     "server, sizes, source, step, swap, sweep, table, title"},
    {1, "title = \"T\"\nprint = \"poems\"", "1: `print` must be tables or explanation, not poems"},
    {1, "title = \"T\"\nprint = \"explanation\"",
     "1: a scenario that prints an explanation must have one recorded step and no sweeps, tables or charts"},
    {1, "title = \"T\"\nfit = \"clients\"", "1: `fit` must name a size: \"clients\" is not a size"},
    {3, "", "1: a scenario needs `scale`"},
    {3, "scale = 3", "3: `scale` must be a table"},
    {3, "scale = { tiny = 0 }", "1: the scale \"tiny\" must be a factor above 0"},
    {3, "scale = { tiny = -1 }", "1: the scale \"tiny\" must be a factor above 0"},
    {3, "scale = { tiny = \"0.1\" }", "3: `tiny` must be a number"},
    {3, "scale = { tiny = inf }", "3: `tiny` must be a number"},
    {3, "scale = { 1st = 1 }", "1: the scale \"1st\" must be a factor above 0"},
    {4, "constants = { clients = \"{kees * 2}\" }",
     "1: {kees * 2} cannot be evaluated: Unexpected token \"kees\" found at position 0."},
    {4, "constants = { keys = 50 }", "1: \"keys\" is defined twice"},
    {4, "constants = { a-b = 50 }",
     "1: \"a-b\" is not a name: use letters, digits and _, starting with a letter"},
    {4, "constants = { clients = [50] }", "4: `clients` must be a string or a number"},
    {6, "keys = { least = 200 }", "6: a size needs `full`"},
    {6, "keys = { full = 0 }", "1: the size keys must be above 0"},
    {6, "keys = { full = 9_007_199_254_740_993 }", "6: `full` must be a number"},
    {6, "keys = 1000", "6: `keys` must be a table"},
    {8, "", "7: a sweep needs `name`"},
    {8, "name = \"keys\"", "7: \"keys\" is defined twice"},
    {9, "", "7: a sweep needs `values`"},
    {9, "values = []", "7: the sweep \"listen\" has no values"},
    {9, "values = [\"unix\", [1]]", "9: `values` must be a string or a list of strings"},
    {9, "values = [\"unix\", \"unix\"]", "7: \"listen\" has the same value twice"},
    {10, "also.word = [\"u\"]", "7: `also.word` needs a value for each of `values`"},
    {10, "also.word = [\"u\", \"{t\"]", "7: a { has no closing }"},
    {10, "also.word = [\"u\", \"{keys*kees}\"]",
     "7: {keys*kees} cannot be evaluated: Unexpected token \"kees\" found at position 5."},
    {10, "tiny = [\"udp\"]", "7: \"udp\" at scale tiny is none of the values of \"listen\""},
    {10, "keep_servers = 1", "10: `keep_servers` must be true or false"},
    {10, "keep_servers = true\n[[sweep]]\nname = \"n\"\nvalues = [1]",
     "11: sweeps with `keep_servers` must come last, because nothing else may change between their values"},
    {12, "kind = \"paper\"", "11: unknown kind of swap \"paper\": use zram or file"},
    {13, "", "11: `swap` needs `size`"},
    {13, "size = \"64MB\"", "11: \"64MB\" is not a size of swap such as 256MiB"},
    {14, "only = { lisen = \"tcp\" }", "11: unknown sweep variable \"lisen\""},
    {16, "", "15: a server needs `name`"},
    {16, "name = \"redis1\"",
     "15: the name of a server must be a name that does not end with a digit, not \"redis1\""},
    {16, "name = \"a.b\"",
     "15: the name of a server must be a name that does not end with a digit, not \"a.b\""},
    {16, "name = \"other\"", "20: the server \"redis\" must come before \"proxy\""},
    {17, "kind = \"mongo\"",
     "15: unknown kind of server \"mongo\": use redis, redis8, valkey, keydb, memcached, "
     "nutcracker, "
     "haproxy and sentinel"},
    {18, "count = 0", "15: `count` must be 1 to 100, not 0"},
    {18, "count = 101", "15: `count` must be 1 to 100, not 101"},
    {18, "count = \"2x\"", "15: `count` must be 1 to 100, not 2x"},
    {18, "count = \"{listen}\"", "15: `count` must be 1 to 100, not unix"},
    {18, "count = \"99999999999\"", "15: `count` must be 1 to 100, not 99999999999"},
    {18, "memory = \"lots\"", "15: \"lots\" is not a size of memory such as 256MiB"},
    {18, "memory = \"{keys - 500}\"", "15: \"-300\" is not a size of memory such as 256MiB"},
    {18, "replicas = \"one\"", "15: `replicas` must be 0 to 100, not one"},
    {18, "config = [\"--maxmemory\", \"{kees}\"]",
     "15: {kees} cannot be evaluated: Unexpected token \"kees\" found at position 0."},
    {18, "cluster = \"yes\"", "18: `cluster` must be true or false"},
    {18, "only = { listen = \"udp\" }", "15: \"listen\" has no value \"udp\""},
    {19, "listen = \"{word}\"", "15: `listen` must be unix or tcp, not u"},
    {19, "listen = \"{listen\"", "15: a { has no closing }"},
    {21, "name = \"redis\"", "20: a point has two servers \"redis\""},
    {23, "", "20: a nutcracker needs `of` with the servers behind it"},
    {23, "of = \"later\"", "20: the server \"later\" must come before \"proxy\""},
    {25, "", "24: a step needs `name`"},
    {25, "name = \"run\"", "28: a point has two steps \"run\""},
    {25, "name = \"1st\"", "24: \"1st\" is not a name for figures"},
    {26, "", "24: `to` is missing: name the server for the load"},
    {23, "of = \"redis\"\nonly = { listen = \"tcp\" }",
     "29: some points of the step have no server \"proxy\": restrict the step with `only`"},
    {26, "to = \"reddis\"", "24: unknown server \"reddis\""},
    {26, "to = \"redis\"\nby = \"wrk\"", "24: `by` must be forktail-load or redis-benchmark, not wrk"},
    {26, "to = \"redis\"\nby = \"redis-benchmark\"\nrecord = true",
     "24: `record` needs forktail-load, because redis-benchmark does not log requests"},
    {26, "to = \"redis\"\nrecord = true\nrequests = \"1/3\"",
     "28: `requests` must be " SAMPLE_WANTED ", not \"1/3\""},
    {26, "to = \"redis\"\nrecord = true\nrequests = true", "28: `requests` must be a string or a number"},
    {26, "to = \"redis\"\nrequests = \"1/16\"", "27: `requests` needs `record`"},
    {27, "load = \"--fill {keys\"", "24: a { has no closing }"},
    {27, "load = \"--fill {keys/0}\"", "24: {keys/0} is not a number"},
    {27, "load = \"--fill {}\"", "24: {} cannot be evaluated: Expression is empty."},
    {27, "load = \"x\"\nask = \"BGSAVE\"",
     "28: a step has no `ask`; it has by, client, cpus, errors, event, load, log, name, only, record, "
     "requests, say, slow, to"},
    {31, "load = \"-n {keys}\"", "32: `at` with a share of the load needs a load with --duration"},
    {33, "", "32: an event needs `at`"},
    {33, "at = \"soon\"",
     "32: `at` must be a share of the load such as 25% or a time such as 2s, not \"soon\""},
    {33, "at = \"150%\"",
     "32: `at` must be a share of the load such as 25% or a time such as 2s, not \"150%\""},
    {33, "at = \"-1s\"",
     "32: `at` must be a share of the load such as 25% or a time such as 2s, not \"-1s\""},
    {33, "at = \"2\"", "32: `at` must be a share of the load such as 25% or a time such as 2s, not \"2\""},
    {34, "ask = \"BGSAVE\"\nwait = \"1s\"",
     "32: a step needs exactly one of load, ask, start, kill, move_slots, await, spread, wait and note"},
    {34, "",
     "32: a step needs exactly one of load, ask, start, kill, move_slots, await, spread, wait and note"},
    {34, "await = \"christmas\"", "32: unknown `await` \"christmas\": use snapshot, rewrite or replicas"},
    {34, "move_slots = 5", "32: `move_slots` needs `to` with the node that receives the slots"},
    {34, "ask = \"PING\"\nreport = true", "32: `report` needs an event that sends BGSAVE or BGREWRITEAOF"},
    {27, "load = \"--fill {keys}\"\nsay = \"{kees:count}\"",
     "24: {kees} cannot be evaluated: Unexpected token \"kees\" found at position 0."},
    {35, "", "32: `server` is missing: name the server of this step"},
    {35, "server = \"reddis1\"", "32: unknown server \"reddis1\""},
    {37, "name = \"s.d\"", "36: \"s.d\" is not a name for a figure"},
    {38, "", "36: a log needs `server`"},
    {38, "server = \"reddis\"", "36: unknown server \"reddis\""},
    {41, "",
     "40: a step needs exactly one of load, ask, start, kill, move_slots, await, spread, wait and note"},
    {41, "wait = \"10%\"", "40: `wait` must be a time such as 2s, not \"10%\""},
    {41, "spread = \"maybe\"", "40: `spread` must be \"on\" or \"off\""},
    {41, "note = \"a.b\"", "40: \"a.b\" is not a name for figures"},
    {41, "dance = \"on\"",
     "41: a step has no `dance`; it has ask, await, kill, load, move_slots, note, only, report, say, "
     "server, spread, start, to, wait"},
    {44, "", "42: a table needs `rows` (names) or `by` (variables)"},
    {44, "by = \"lisen\"", "42: unknown sweep variable \"lisen\""},
    {44, "by = \"listen\"\nwhere = { listen = \"udp\" }", "42: \"listen\" has no value \"udp\""},
    {46, "", "45: a column needs `title`"},
    {47, "value = \"walk.rps / base.run.rps\"", "45: no step produces \"walk.rps\""},
    {47, "value = \"clyents * 2\"", "45: no step produces \"clyents\""},
    {47, "value = \"base.walk.rps\"", "45: no step produces \"walk.rps\""},
    {47, "value = \"run.rps\"\nformat = \"furlongs\"",
     "45: unknown format \"furlongs\": use one of bytes, count, decimals1, decimals2, ms, number, "
     "percent, s, text, us"},
    {47, "value = \"run.rps\"\npublished = { unix = \"many\" }", "48: `unix` must be a number"},
    {48, "", "45: \"base.run.rps\" needs `against`"},
    {48, "against = { listen = \"udp\" }", "45: \"listen\" has no value \"udp\""},
    {51, "", "49: a chart needs `x`"},
    {51, "x = \"lisen\"", "49: unknown sweep variable \"lisen\""},
    {54, "value = \"walk.rps\"", "52: no step produces \"walk.rps\""},
};

Scenario Read(const std::string &text)
{
	Scenario scenario;
	std::string error;
	bool good = ParseScenario(text, "s.toml", &scenario, &error);
	INFO(error);
	REQUIRE(good);
	return scenario;
}

std::string Expanded(const std::string &text, const Values &values)
{
	std::string expanded, error;
	return Expand(text, values, &expanded, &error) ? expanded : "error: " + error;
}

} // namespace

TEST_CASE("a correct scenario is read")
{
	Scenario scenario = Read(kGood);
	CHECK(MistakeIn(kGood).empty());
	CHECK(scenario.name == "s");
	CHECK(scenario.servers[0].count == "2");
	CHECK(scenario.steps.size() == 3);
	CHECK(scenario.steps[1].events[0].at == "50%");
	CHECK(scenario.steps[1].logs[0].text == "Background saving started");
	CHECK(scenario.steps[2].action.wait == "10ms");
	CHECK(scenario.tables[0].columns[0].against == Values{{"listen", "unix"}});
	CHECK(scenario.swap.only == Filter{{"listen", {"tcp"}}});
}

TEST_CASE("an error is refused with its line and its reason")
{
	for (const Mistake &mistake : kMistakes) {
		INFO("line " << mistake.line << ": " << mistake.by);
		CHECK(MistakeIn(WithLine(mistake.line, mistake.by)) == mistake.said);
	}
}

TEST_CASE("invalid TOML is refused with its line")
{
	CHECK(MistakeIn(WithLine(18, "count = ")).rfind("18: ", 0) == 0);
	CHECK(MistakeIn(WithLine(9, "values = [\"unix\"")).find(": ") != std::string::npos);
	CHECK(MistakeIn(WithLine(16, "name = \"redis\"\nname = \"redis\"")).rfind("17: ", 0) == 0);
	CHECK(MistakeIn("\xff\xfe").rfind("1: ", 0) == 0);
	CHECK(MistakeIn("") == "1: a scenario needs `title`");
	CHECK(MistakeIn("title = \"T\"\nabout = \"A\"\nscale = {}\n") == "1: a scenario needs a [[step]]");
	Scenario scenario;
	std::string error;
	CHECK_FALSE(ReadScenario("/nonexistent.toml", &scenario, &error));
	CHECK(error == "cannot read the scenario /nonexistent.toml");
}

TEST_CASE("an invalid formula is refused")
{
	for (const char *formula : {"run.rps /", "(run.rps", "run.rps run.p99", "", "nosuch(run.rps)"}) {
		INFO(formula);
		CHECK(MistakeIn(WithLine(47, "value = \"" + std::string(formula) + "\"")).rfind("45: ", 0) ==
		      0);
	}
}

TEST_CASE("constants and sizes can be set")
{
	Scenario scenario;
	std::string error;
	const std::string text = WithLine(4, "constants = { clients = 50, half = \"{keys / 2}\" }");
	REQUIRE(ParseScenario(text, "s.toml", &scenario, &error, {{"clients", "7"}, {"keys", "30"}}));
	for (double factor : {0.1, 1.0}) {
		Values point = PointsOf(scenario, {"", factor})[0];
		CHECK(point["clients"] == "7");
		CHECK(point["keys"] == "30");
		CHECK(point["half"] == "15");
	}
	CHECK_FALSE(ParseScenario(kGood, "s.toml", &scenario, &error, {{"listen", "tcp"}}));
	CHECK(error == "s.toml: unknown constant or size \"listen\"");
	CHECK_FALSE(ParseScenario(kGood, "s.toml", &scenario, &error, {{"keys", "many"}}));
	CHECK(error == "s.toml: the size keys must be above 0, not many");
}

TEST_CASE("notes may name figures, and have them in readable units")
{
	Values values = {{"keys", "94042"}, {"seconds", "12.5"}};
	auto figure = [](const std::string &name) {
		return name == "filled.redis.rss" ? std::optional<double>(124'000'000) : std::nullopt;
	};
	std::string told, error;
	REQUIRE(ExpandText("{keys:count} of {keys} in {seconds} s", values, figure, &told, &error));
	CHECK(told == "94,042 of 94042 in 12.5 s");
	REQUIRE(ExpandText("{filled.redis.rss:bytes}, {keys*2:count}", values, figure, &told, &error));
	CHECK(told == "124 MB, 188,084");
	CHECK_FALSE(ExpandText("{kees:count}", values, figure, &told, &error));
	CHECK_FALSE(ExpandText("{keys", values, figure, &told, &error));
}

TEST_CASE("templates")
{
	Values values = {{"keys", "1000"}, {"name", "a b"}, {"half", "0.5"}, {"empty", ""}};
	CHECK(Expanded("", values).empty());
	CHECK(Expanded("-n {keys} {name}", values) == "-n 1000 a b");
	CHECK(Expanded("{keys}{keys}", values) == "10001000");
	CHECK(Expanded("{keys*2/3}", values) == "666");
	CHECK(Expanded("{-keys/3}", values) == "-334");
	CHECK(Expanded("{half}", values) == "0.5"); // unchanged; only results of arithmetic are rounded
	CHECK(Expanded("{half*3}", values) == "1");
	CHECK(Expanded("{2^ceil(log2(keys))}", values) == "1024");
	CHECK(Expanded("{max(64, keys*(2+3))}MiB", values) == "5000MiB");
	CHECK(Expanded("{keys*1000000000}", values) == "1000000000000");
	CHECK(Expanded("{empty}", values).empty());
	CHECK(Expanded("}", values) == "}");
	CHECK(Expanded("{keys", values) == "error: a { has no closing }");
	CHECK(Expanded("{keys/0}", values) == "error: {keys/0} is not a number");
	for (const char *wrong : {"{unknown}", "{name*2}", "{}", "{{keys}}", "{keys*}"}) {
		INFO(wrong);
		std::string text = wrong;
		CHECK(Expanded(text, values)
			  .rfind("error: " + text.substr(0, text.find('}') + 1) + " cannot be evaluated: ",
				 0) == 0);
	}
}

TEST_CASE("points are in order, the last sweep varies fastest, and sizes follow the scale")
{
	Scenario scenario = Read(R"(title = "T"
about = "A"
scale = { tiny = 0.1 }
constants = { clients = 50 }
sizes.keys = { full = 1000, least = 200 }
[[sweep]]
name = "a"
values = [1, 2, 3]
tiny = [1, 3]
also.b = ["one", "{a*100}", "{size+keys}"]
[[sweep]]
name = "size"
values = ["{keys/2}", "{keys*2}"]
[[step]]
wait = "1s"
)");
	auto told = [&](const Scale &scale) {
		std::string text;
		for (const Values &point : PointsOf(scenario, scale))
			text += point.at("a") + " " + point.at("size") + " " + point.at("keys") + " " +
				point.at("clients") + "; ";
		return text;
	};
	CHECK(told({"", 1}) == "1 500 1000 50; 1 2000 1000 50; 2 500 1000 50; 2 2000 1000 50; 3 500 1000 50; "
			       "3 2000 1000 50; ");
	CHECK(told({"tiny", 0.1}) == "1 100 200 50; 1 400 200 50; 3 100 200 50; 3 400 200 50; ");
	CHECK(told({"", 0.5}).rfind("1 250 500 50; ", 0) == 0);
	std::vector<Values> points = PointsOf(scenario, {"tiny", 0.1});
	CHECK(points[0].at("b") == "one");
	CHECK(PointsOf(scenario, {"", 1})[2].at("b") == "200");
	// A value of another sweep is computed before it is used.
	CHECK(points[2].at("b") == "300");
	CHECK(points[3].at("b") == "600");
	scenario.sweeps.clear();
	CHECK(PointsOf(scenario, {"", 1}).size() == 1);
}

TEST_CASE("filters")
{
	Values values = {{"a", "1"}, {"b", "x"}};
	CHECK(Matches({}, values));
	CHECK(Matches({{"a", {"2", "1"}}}, values));
	CHECK(Matches({{"a", {"1"}}, {"b", {"x"}}}, values));
	CHECK_FALSE(Matches({{"a", {"1"}}, {"b", {"y"}}}, values));
	CHECK_FALSE(Matches({{"a", {}}}, values));
	CHECK_FALSE(Matches({{"c", {"1"}}}, values));
}

TEST_CASE("scales")
{
	Scenario scenario;
	scenario.scales = {{"small", 0.25}, {"tiny", 0.1}};
	Scale scale;
	std::string error;
	CHECK(ParseScale(scenario, "tiny", &scale, &error));
	CHECK(scale.name == "tiny");
	CHECK(scale.factor == 0.1);
	CHECK(ParseScale(scenario, "0.5", &scale, &error));
	CHECK(scale.name.empty());
	CHECK(scale.factor == 0.5);
	CHECK(ParseScale(scenario, "1000", &scale, &error));
	for (const char *text : {"0", "-1", "1001", "", "big", "1x", "nan", "inf", " 1"}) {
		CHECK_FALSE(ParseScale(scenario, text, &scale, &error));
		CHECK(error ==
		      "a scale must be a number above 0 and at most 1000, or small, or tiny, not \"" +
			  std::string(text) + "\"");
	}
}

TEST_CASE("when an event is due")
{
	Due due;
	REQUIRE(ParseDue("25%", &due));
	CHECK(due.is_share);
	CHECK(due.share == 0.25);
	REQUIRE(ParseDue("1.5s", &due));
	CHECK_FALSE(due.is_share);
	CHECK(due.seconds == 1.5);
	REQUIRE(ParseDue("500ms", &due));
	CHECK(due.seconds == 0.5);
	CHECK(ParseDue("0s", &due));
	CHECK(ParseDue("100%", &due));
	for (const char *text : {"", "s", "1", "1 s", "1m", "101%", "-1%", "nan%", "infs", "1ss"}) {
		INFO(text);
		CHECK_FALSE(ParseDue(text, &due));
	}
}

TEST_CASE("root is needed to record, to limit, to swap, and to steer soft interrupts")
{
	Scenario scenario = Read(kGood);
	CHECK(NeedsRoot(scenario)); // it swaps
	scenario.swap = {};
	CHECK_FALSE(NeedsRoot(scenario));
	scenario.steps[0].record = true;
	CHECK(NeedsRoot(scenario));
	scenario.steps[0].record = false;
	scenario.servers[0].memory = "1GiB";
	CHECK(NeedsRoot(scenario));
	scenario.servers[0].memory.clear();
	scenario.steps[2].action.spread = "on";
	CHECK(NeedsRoot(scenario));
	scenario.steps[2].action.spread.clear();
	scenario.steps[1].events[0].spread = "on";
	CHECK(NeedsRoot(scenario));
}
