// SPDX-License-Identifier: MIT
// Scenarios of every topology run on real servers and have a figure in each cell. Runs are repeated,
// compared, and resumed after the lab was killed.
#include <csignal>
#include <filesystem>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/lab/support.h"

using namespace forktail::test;
namespace fs = std::filesystem;

namespace
{

const std::string kHead =
    "title = \"A test\"\nabout = \"What a test needs.\"\nscale = { small = 1, tiny = 0.5 }\n";

// A topology, the load on it, and the expected figures.
struct Case {
	const char *name;
	const char *servers; // and swap, and steps before the load
	const char *load;    // the rest of the step: to, load, events
	std::vector<const char *> figures;
};

const std::vector<Case> kCases = {
    {"one Redis",
     "[[server]]\nname = \"redis\"\nkind = \"redis\"\n",
     "to = \"redis\"\nload = \"-n 4000 -c 4 -r 1000 --ratio 1:1 --buckets=5ms,10ms\"\n",
     {"run.bucket_5ms", "run.redis.cpu_percent", "run.redis.used_memory", "run.SET.p99", "run.GET.p99"}},
    {"memcached",
     "[[server]]\nname = \"store\"\nkind = \"memcached\"\nlisten = \"tcp\"\n",
     "to = \"store\"\nload = \"-n 4000 -c 4 -r 1000 --ratio 1:1\"\n",
     {"run.store.cpu_percent", "run.store.d_cmd_set", "run.SET.p99", "run.GET.rps"}},
    {"replicas",
     "[[server]]\nname = \"primary\"\nkind = \"redis\"\nlisten = \"tcp\"\n"
     "[[server]]\nname = \"standby\"\nkind = \"redis\"\nlisten = \"tcp\"\ncount = 2\nreplica_of = "
     "\"primary\"\n"
     "[[step]]\nawait = \"replicas\"\nserver = \"primary\"\n",
     "to = \"primary\"\nload = \"-n 4000 -c 4 -r 1000 --ratio 1:1\"\n",
     {"run.primary.cpu_percent", "run.standby1.cpu_percent", "run.standby2.used_memory"}},
    {"nutcracker in front of three",
     "[[server]]\nname = \"redis\"\nkind = \"redis\"\ncount = 3\n"
     "[[server]]\nname = \"proxy\"\nkind = \"nutcracker\"\nof = \"redis\"\n",
     "to = \"proxy\"\nload = \"-n 4000 -c 4 -r 1000 --ratio 1:1\"\n",
     {"run.proxy.cpu_percent", "run.redis1.cpu_percent", "run.redis3.d_total_commands_processed",
      "run.redis.used_memory"}},
    {"Cluster",
     "[[server]]\nname = \"node\"\nkind = \"redis\"\nlisten = \"tcp\"\ncluster = true\ncount = 3\n"
     "[[step]]\nname = \"fill\"\nto = \"node\"\nload = \"--fill 1000 -d 100\"\n",
     "to = \"node\"\nload = \"--rate 500 --duration 3s -r 1000 -d 100 -c 4 --ratio 1:1\"\n"
     "[[step.event]]\nat = \"25%\"\nmove_slots = 50\nserver = \"node1\"\nto = \"node2\"\n",
     {"run.node1.p99", "run.node3.requests", "run.move_time", "run.redirects_moved", "fill.requests"}},
    {"Sentinel failover",
     "[[server]]\nname = \"primary\"\nkind = \"redis\"\nlisten = \"tcp\"\n"
     "[[server]]\nname = \"standby\"\nkind = \"redis\"\nlisten = \"tcp\"\nreplica_of = \"primary\"\n"
     "[[server]]\nname = \"sentinel\"\nkind = \"sentinel\"\nlisten = \"tcp\"\ncount = 3\nof = \"primary\"\n"
     "config = [\"down-after-milliseconds 1000\", \"failover-timeout 10000\"]\n",
     "to = \"sentinel\"\nerrors = true\nload = \"--rate 300 --duration 10s -r 1000 -c 4 --ratio 1:1\"\n"
     "[[step.event]]\nat = \"10%\"\nkill = \"primary\"\n"
     "[[step.log]]\nname = \"switched\"\nserver = \"sentinel\"\ntext = \"+switch-master\"\n",
     {"run.outages", "run.outage", "run.switched", "run.standby.used_memory"}},
    {"a search",
     "[[server]]\nname = \"redis\"\nkind = \"redis\"\nconfig = [\"--enable-debug-command\", \"yes\"]\n",
     "to = \"redis\"\nload = \"--find 'p50 < 40ms' --command 'DEBUG SLEEP 0.01' -c 8 --duration 400ms "
     "--warmup 100ms --repeat 1\"\n",
     {"run.highest", "run.beyond", "run.highest.runs", "run.highest.explained_percent", "run.beyond.slow"}},
    {"memory limit and swap",
     "[swap]\nkind = \"file\"\nsize = \"128MiB\"\n"
     "[[server]]\nname = \"store\"\nkind = \"redis\"\nmemory = \"24MiB\"\n"
     "[[step]]\nname = \"fill\"\nto = \"store\"\nload = \"--fill 40000 -d 1000\"\n"
     "[[step]]\nnote = \"full\"\n",
     "to = \"store\"\nload = \"-n 2000 -c 4 -r 40000 -d 1000 --ratio 1:1\"\n",
     {"full.store.swap", "run.store.rss", "run.store.memory_percent", "run.host.swap_in_kb_s"}},
};

std::string TomlOf(const Case &one)
{
	std::string text = kHead + one.servers + "[[step]]\nname = \"run\"\nrecord = true\n" + one.load +
			   "[[table]]\ntitle = \"Figures\"\nrows = [\"run\"]\n"
			   "[[table.column]]\ntitle = \"requests/s\"\nvalue = \"{row}.rps\"\n"
			   "[[table.column]]\ntitle = \"slow\"\nvalue = \"{row}.slow\"\n"
			   "[[table.column]]\ntitle = \"explained\"\nvalue = "
			   "\"run.explained_percent\"\nformat = \"percent\"\n";
	for (const char *figure : one.figures)
		text +=
		    "[[table.column]]\ntitle = \"" + std::string(figure) + "\"\nvalue = \"" + figure + "\"\n";
	return text;
}

// A point for each number of clients: a short load, and a wait.
std::string Sweep(const std::string &values, const std::string &wait)
{
	return kHead + "[[sweep]]\nname = \"clients\"\nvalues = " + values +
	       "\n[[server]]\nname = \"redis\"\nkind = \"redis\"\n"
	       "[[step]]\nname = \"run\"\nto = \"redis\"\nload = \"-n 2000 -c {clients} -t set\"\n"
	       "[[step]]\nwait = \"" +
	       wait +
	       "\"\n[[table]]\ntitle = \"Rates\"\nby = \"clients\"\n"
	       "[[table.column]]\ntitle = \"requests/s\"\nvalue = \"run.rps\"\n";
}

// The points of its results.json.
nlohmann::json PointsOf(const ScenarioRun &run)
{
	return parse_json(read_file(run.run + "/results.json")).at("points");
}

bool HasEmptyCell(const std::string &table)
{
	std::istringstream words(table);
	for (std::string word; words >> word;)
		if (word == "-")
			return true;
	return false;
}

void CheckNothingLeft(const ScenarioRun &run)
{
	CHECK(run.Alive() == std::vector<std::string>{});
	CHECK(run.Left() == std::vector<std::string>{});
	CHECK(run.Changed() == std::vector<std::string>{});
}

} // namespace

TEST_CASE("Every topology runs, is recorded and explained, and has a figure in each cell")
{
	Case one = GENERATE(from_range(kCases));
	ScenarioRun run(TomlOf(one));
	int status = run.Finish();
	std::string said = run.lab->err();
	INFO(one.name << "\n" << said);
	if (status == 3 && (said.find(": this host has no ") != std::string::npos ||
			    said.find(": cannot swap ") != std::string::npos ||
			    said.find(": cannot limit memory") != std::string::npos)) {
		WARN("SKIPPED: " << said);
		return;
	}
	REQUIRE(status == 0);
	CheckNothingLeft(run);

	const nlohmann::json points = PointsOf(run);
	REQUIRE(points.size() == 1);
	for (const char *figure : one.figures) {
		INFO(figure);
		CHECK(points[0].at("numbers").contains(figure));
	}
	CHECK(points[0].at("recorded") == nlohmann::json::array({"points/point/run"}));
	std::string tables = read_file(run.run + "/tables.txt");
	INFO(tables);
	CHECK_FALSE(HasEmptyCell(tables));
	CHECK(run.lab->out().find("Figures") != std::string::npos);
	CHECK(read_file(run.run + "/report.html").find("points/point/run/report.html") != std::string::npos);
	for (const char *file : {"server.forktail", "load.forktail", "run.json", "load.json", "load.txt",
				 "explain.json", "report.html"})
		CHECK_FALSE(read_file(run.run + "/points/point/run/" + file).empty());
	Result explained =
	    forktail::test::run({program("forktail"), "explain", run.run + "/points/point/run"});
	CHECK(explained.status == 0);
}

TEST_CASE(
    "A recorded load's threads are in its account, unless excluded, and the kernel's requests are joined")
{
	const std::string toml = kHead + "[[server]]\nname = \"redis\"\nkind = \"redis\"\n"
					 "[[step]]\nname = \"run\"\nto = \"redis\"\nrecord = true\n"
					 "requests = \"1/1\"\nload = \"-n 2000 -t set\"\n"
					 "[[table]]\ntitle = \"Rates\"\nrows = [\"run\"]\n"
					 "[[table.column]]\ntitle = \"requests/s\"\nvalue = \"{row}.rps\"\n";
	for (const bool wanted : {true, false}) {
		ScenarioRun run(toml);
		const int status = wanted ? run.Finish() : run.Finish({"--no-client"});
		INFO(run.lab->err());
		REQUIRE(status == 0);
		const nlohmann::json explanation =
		    parse_json(read_file(run.run + "/points/point/run/explain.json"));
		bool traced = false;
		for (const nlohmann::json &thread : explanation["account"]["threads"])
			traced = traced || thread["client"] == true;
		CHECK(traced == wanted);
		CHECK(explanation.at("requests").at("network_split").at("known") > 0);
		if (!wanted) {
			CHECK(run.Finish({"--resume"}) == 3); // that would be a different run
			CHECK(run.Finish({"--resume", "--no-client"}) == 0);
		}
	}
}

TEST_CASE("Repeats have ranges, two runs are compared, and finished points are not run again")
{
	ScenarioRun first(Sweep("[1, 4]", "1ms")), second(Sweep("[1, 4]", "1ms"));
	int status = first.Finish({"--repeat", "2"});
	INFO(first.lab->err());
	REQUIRE(status == 0);
	const nlohmann::json points = PointsOf(first);
	REQUIRE(points.size() == 2);
	for (const nlohmann::json &point : points) {
		CHECK(point.at("repeats") == 2);
		CHECK(point.at("least").at("run.rps") <= point.at("numbers").at("run.rps"));
		CHECK(point.at("most").at("run.rps") >= point.at("numbers").at("run.rps"));
		CHECK(point.at("least").at("run.requests") == 2000);
	}
	CHECK(fs::exists(first.run + "/points/clients=4,repeat=2/point.json"));

	REQUIRE(second.Finish() == 0);
	Result compared = forktail::test::run({program("forktail"), "lab", "compare", first.run, second.run});
	INFO(compared.out << compared.err);
	CHECK(compared.status == 0);
	CHECK(compared.out.find("requests/s") != std::string::npos);
	CHECK(compared.out.find("ratio") != std::string::npos);
	CHECK(compared.out.find("--repeat 4") != std::string::npos);
	Result none = forktail::test::run({program("forktail"), "lab", "compare", first.run, second.temp});
	CHECK(none.status == 3);
	CHECK(none.err.find("results.json") != std::string::npos);

	auto before = fs::last_write_time(first.run + "/points/clients=1,repeat=1/point.json");
	CHECK(first.Finish({"--repeat", "2", "--resume"}) == 0);
	CHECK(first.lab->err().find(", point ") == std::string::npos);
	CHECK(fs::last_write_time(first.run + "/points/clients=1,repeat=1/point.json") == before);

	CHECK(first.Finish({"--repeat", "2"}) == 3);
	CHECK(first.lab->err() == "forktail lab: " + first.run +
				      " exists: name another directory, or use --resume to continue in it\n");
	for (const std::vector<std::string> &other : std::vector<std::vector<std::string>>{
		 {"--resume", "--repeat", "2", "--scale", "tiny"}, {"--resume", "--repeat", "3"}}) {
		CHECK(first.Finish(other) == 3);
		CHECK(first.lab->err() ==
		      "forktail lab: " + first.run +
			  " was started with another scenario file, settings, scale or number of repeats\n");
	}
	CheckNothingLeft(first);
}

TEST_CASE("A killed run continues where it was")
{
	ScenarioRun run(Sweep("[1, 2, 3, 4]", "2s"));
	run.Start();
	bool said = run.Says("point 3 of 4");
	run.lab->signal(SIGKILL);
	run.lab->wait(Seconds(20));
	INFO(run.lab->err());
	REQUIRE(said);
	CHECK(eventually([&] { return run.Alive().empty(); }, Seconds(60)));
	CHECK(run.Left() == std::vector<std::string>{});
	auto file = [&](int point) {
		return run.run + "/points/clients=" + std::to_string(point) + "/point.json";
	};
	REQUIRE(fs::exists(file(2)));
	REQUIRE_FALSE(fs::exists(file(3)));
	auto first = fs::last_write_time(file(1)), second = fs::last_write_time(file(2));

	CHECK(run.Finish({"--resume"}) == 0);
	INFO(run.lab->err());
	CHECK(fs::last_write_time(file(1)) == first);
	CHECK(fs::last_write_time(file(2)) == second);
	CHECK(run.lab->err().find("point 2 of 4") == std::string::npos);
	CHECK(run.lab->err().find("point 3 of 4: clients 3") != std::string::npos);
	CHECK(PointsOf(run).size() == 4);
	CHECK_FALSE(HasEmptyCell(read_file(run.run + "/tables.txt")));
	CheckNothingLeft(run);
}

TEST_CASE("Points on the same servers are repeated together")
{
	std::string toml = Sweep("[1, 2, 3]", "1ms");
	toml.insert(toml.find("\n[[server]]") + 1, "keep_servers = true\n");
	ScenarioRun run(toml);
	REQUIRE(run.Finish() == 0);
	CHECK(fs::exists(run.run + "/points/clients=1/logs/redis.log"));
	CHECK_FALSE(fs::exists(run.run + "/points/clients=2/logs/redis.log"));
	fs::remove(run.run + "/points/clients=2/point.json");
	CHECK(run.Finish({"--resume"}) == 0);
	INFO(run.lab->err());
	for (const char *point : {"point 1 of 3", "point 2 of 3", "point 3 of 3"})
		CHECK(run.lab->err().find(point) != std::string::npos);
	CHECK(PointsOf(run).size() == 3);
	CheckNothingLeft(run);
}

TEST_CASE("redis-benchmark can generate the load")
{
	ScenarioRun run(kHead +
			"[[server]]\nname = \"redis\"\nkind = \"redis\"\n"
			"[[step]]\nname = \"run\"\nto = \"redis\"\nby = \"redis-benchmark\"\n"
			"load = \"-n 2000 -c 4 -t set,lrange_100\"\n"
			"[[table]]\ntitle = \"Rates\"\nrows = [\"SET\", \"LRANGE_100\"]\n"
			"[[table.column]]\ntitle = \"requests/s\"\nvalue = \"run.{row}.rps\"\n"
			"[[table.column]]\ntitle = \"p99\"\nvalue = \"run.{row}.p99\"\nformat = \"ms\"\n");
	int status = run.Finish();
	INFO(run.lab->err() << run.lab->out());
	REQUIRE(status == 0);
	for (const char *figure : {"run.SET.rps", "run.SET.max", "run.LRANGE_100.p99"})
		CHECK(PointsOf(run)[0].at("numbers").at(figure) > 0);
	CHECK_FALSE(HasEmptyCell(read_file(run.run + "/tables.txt")));
	CheckNothingLeft(run);
}

TEST_CASE("Options that forktail-load refuses are refused before anything starts, with its own message")
{
	for (const std::string words : {"--nonsense 5", "-t nosuch", "-n -5", "--rate soon --duration 1s"}) {
		std::vector<std::string> argv = {program("forktail-load")};
		std::istringstream each(words);
		for (std::string word; each >> word;)
			argv.push_back(word);
		Result alone = forktail::test::run(argv);
		std::string sentence = alone.err.substr(0, alone.err.find('\n'));
		ScenarioRun run(kHead +
				"[[server]]\nname = \"redis\"\nkind = \"redis\"\n[[step]]\nname = \"run\"\n"
				"to = \"redis\"\nload = \"" +
				words + "\"\n");
		int status = run.Finish();
		INFO(run.lab->err());
		CHECK(status == 2);
		REQUIRE_FALSE(sentence.empty());
		CHECK(run.lab->err() == "forktail lab: " + run.file + ":7: " + sentence + "\n");
		CHECK_FALSE(fs::exists(run.run));
		CheckNothingLeft(run);
	}
}

TEST_CASE("Another server is not used when the scenario's own is missing")
{
	const std::string later = "[[server]]\nname = \"redis\"\nkind = \"redis\"\nlater = true\n";
	for (const std::string step :
	     {"to = \"redis\"\nname = \"run\"\nload = \"-n 10\"\n",
	      "ask = \"FLUSHALL\"\nserver = \"redis\"\n", "await = \"snapshot\"\nserver = \"redis\"\n"}) {
		ScenarioRun run(kHead + later + "[[step]]\n" + step);
		CHECK(run.Finish() == 3);
		CHECK(run.lab->err().find("forktail lab: " + run.file +
					  ":8: the server redis is not running\n") != std::string::npos);
		CheckNothingLeft(run);
	}
}

TEST_CASE("Points that would share a directory are refused")
{
	ScenarioRun run(Sweep("[\"{1+1}\", \"{4/2}\"]", "1ms"));
	CHECK(run.Finish() == 3);
	CHECK(run.lab->err() ==
	      "forktail lab: " + run.file + ": two points are the same at this scale: clients 2\n");
	CHECK_FALSE(fs::exists(run.run));
}

TEST_CASE("Invalid scenarios are refused before anything starts")
{
	ScenarioRun run(kHead + "[[step]]\nwait = \"soon\"\n");
	CHECK(run.Finish() == 2);
	CHECK(run.lab->err() ==
	      "forktail lab: " + run.file + ":4: `wait` must be a time such as 2s, not \"soon\"\n");
	write_file(run.file, kHead + "[[step]]\nwait = \"1ms\"\n");
	CHECK(run.Finish({"--scale", "huge"}) == 2);
	CHECK(run.lab->err().find(
		  "a scale must be a number above 0 and at most 1000, or small, or tiny, not \"huge\"") !=
	      std::string::npos);
	CHECK_FALSE(fs::exists(run.run));
	CHECK(run.Finish({"--scale", "tiny"}) == 0);
	CheckNothingLeft(run);
}
