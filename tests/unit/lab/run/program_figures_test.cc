// SPDX-License-Identifier: MIT
// Figures from other programs' output, also when it is damaged. Times in servers' logs, words of command
// lines, and the due times of events.
#include <ctime>

#include "lab/run/program_figures.h"
#include "lab/run/steps.h"
#include "lab/scenario/words.h"
#include "lab/servers/logs.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::lab;
using namespace forktail::test;

namespace
{

const char *const kFigures =
    R"({"requests": 100, "errors": 4, "misses": 7, "requests_per_s": 50.5, "mb_per_s": 0.5,
	"latency_ns": {"count": 96, "min": 1000, "p50": 2000, "p99.9": 9000, "max": 9999},
	"buckets": [{"up_to_ns": 500000, "requests": 5}, {"up_to_ns": 25000000, "requests": 99}, {"requests": 1}]})";

std::string LoadJson(size_t runs)
{
	std::string figures = kFigures,
		    one = R"({"seconds": 2, "operations": {"READ-MODIFY-WRITE": )" + figures +
			  R"(}, "total": )" + figures +
			  R"(, "client": {"cpu_s": 0.5}, "sent_late_ns": {"mean": 11, "max": 22},
	"nodes": [{"server": "127.0.0.1:7001", "requests": 60, "errors": 1, "p50_ns": 1, "p99_ns": 2, "p99.9_ns": 3,
		   "max_ns": 4}, {"server": "another", "requests": 1}],
	"redirects": {"moved": 3},
	"outages": [{"gap_ns": 5, "failed": 1, "delayed": 2}, {"gap_ns": 9, "failed": 1, "delayed": 3}]})";
	std::string text = R"({"runs": [)";
	for (size_t i = 0; i < runs; i++)
		text += (i ? "," : "") + one;
	return text + "]}";
}

const char *const kExplained = R"({"slow": {"threshold_ns": 5000, "count": 12},
	"causes": [{"cause": "fork", "share": 0.6, "time_ns": 600, "what_if": {"p99": 40, "max": 50}},
		   {"cause": "run-queue", "share": 0.25, "time_ns": 250, "what_if": {}},
		   {"cause": "unknown", "share": 0.145, "time_ns": 145, "what_if": {}},
		   {"cause": "steal", "share": 0.005, "time_ns": 5, "what_if": {}}],
	"own_code": {"activities": [{"name": "command SET", "share": 0.3}]},
	"slow_requests": [{"latency_ns": 5, "parts": []},
			  {"latency_ns": 4000, "parts": [{"cause": "fork", "direct_ns": 3000, "queued_ns": 900},
								  {"cause": "network", "direct_ns": 1, "queued_ns": 0}]}],
	"hops": [{"name": "redis-server 127.0.0.1:7003", "address": "127.0.0.1:7003", "share": 0.75}, {"name": "proxy", "share": 0.001}],
	"episodes": [{"t_s": 1.5, "requests": 3, "worst_ns": 2000000, "causes": [], "evidence": ["the lesser"]},
		     {"t_s": 2.25, "requests": 1000, "worst_ns": 90000000,
		      "causes": [{"cause": "fork", "share": 1.0}], "evidence": ["it forked", "and copied"]}]})";

// A file with this text.
struct Given {
	TempDir dir;
	std::string path = dir.file("file"), error;
	Point point;

	explicit Given(const std::string &text) { write_file(path, text); }
	bool Load() { return AddLoadFigures("run", path, {{"127.0.0.1:7001", "redis1"}}, &point, &error); }
	bool Benchmark() { return AddBenchmarkFigures("run", path, &point, &error); }
	bool Explained()
	{
		return AddExplanation("run", path, {{"127.0.0.1:7003", "redis3"}}, &point, &error);
	}
	double operator[](const std::string &name)
	{
		INFO(name);
		REQUIRE(point.numbers.count(name) == 1);
		return point.numbers[name];
	}
};

// A text with the first `what` of it replaced.
std::string Damaged(std::string text, const std::string &what, const std::string &by)
{
	size_t at = text.find(what);
	INFO(what);
	REQUIRE(at != std::string::npos);
	return text.replace(at, what.size(), by);
}

} // namespace

TEST_CASE("figures of a load")
{
	Given given(LoadJson(1));
	REQUIRE(given.Load());
	CHECK(given["run.requests"] == 100);
	CHECK(given["run.succeeded"] == 96);
	CHECK(given["run.misses"] == 7);
	CHECK(given["run.error_percent"] == 4);
	CHECK(given["run.rps"] == 50.5);
	CHECK(given["run.p99_9"] == 9000);
	CHECK(given["run.READ_MODIFY_WRITE.max"] == 9999);
	CHECK(given["run.bucket_500us"] == 5);
	CHECK(given["run.bucket_25ms"] == 99);
	CHECK(given["run.bucket_over"] == 1);
	CHECK(given["run.late_mean"] == 11);
	CHECK(given["run.late_max"] == 22);
	CHECK(given["run.client_cpu_s"] == 0.5);
	CHECK(given["run.client_us_per_request"] == 5000);
	CHECK(given["run.redis1.requests"] == 60);
	CHECK(given["run.redis1.p99_9"] == 3);
	CHECK(given["run.redirects_moved"] == 3);
	CHECK(given["run.outages"] == 2);
	CHECK(given["run.outage"] == 9);
	CHECK(given["run.outage_failed"] == 2);
	CHECK(given["run.outage_delayed"] == 5);
}

TEST_CASE("a load of several tests has sums, and no percentiles over all")
{
	Given given(LoadJson(2));
	REQUIRE(given.Load());
	CHECK(given["run.requests"] == 200);
	CHECK(given["run.errors"] == 8);
	CHECK(given["run.seconds"] == 4);
	CHECK(given["run.client_cpu_s"] == 1);
	CHECK(given["run.READ_MODIFY_WRITE.p50"] == 2000);
	CHECK(given.point.numbers.count("run.rps") == 0);
	CHECK(given.point.numbers.count("run.p50") == 0);
}

TEST_CASE("a test without a single answer has no percentiles")
{
	Given given(
	    Damaged(Damaged(LoadJson(1), "\"count\": 96", "\"count\": 0"), "\"count\": 96", "\"count\": 0"));
	REQUIRE(given.Load());
	CHECK(given.point.numbers.count("run.p50") == 0);
	CHECK(given["run.requests"] == 100);
}

TEST_CASE("JSON of another kind is refused as a load")
{
	for (const char *text : {"", "[]", "null", "{\"runs\": [", "garbage"}) {
		Given given(text);
		CHECK_FALSE(given.Load());
		CHECK(given.error == given.path + " does not contain JSON");
	}
	std::vector<std::string> damaged = {"{}", R"({"runs": 5})", R"({"runs": [{}]})",
					    R"({"runs": [null]})"};
	for (const char *key :
	     {"seconds", "total", "operations", "cpu_s", "mean", "misses", "latency_ns", "server", "p50_ns"})
		damaged.push_back(Damaged(LoadJson(1), std::string("\"") + key + "\"", "\"other\""));
	damaged.push_back(Damaged(LoadJson(1), "\"requests\": 100", "\"requests\": \"100\""));
	damaged.push_back(Damaged(LoadJson(1), "\"requests\": 99", "\"requests\": null"));
	for (const std::string &text : damaged) {
		Given given(text);
		INFO(text);
		CHECK_FALSE(given.Load());
		CHECK(given.error.rfind(given.path + " is not output of forktail-load: ", 0) == 0);
	}
}

TEST_CASE("figures of redis-benchmark")
{
	Given given(
	    "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
	    "\"p99_latency_ms\",\"max_latency_ms\"\n"
	    "\"SET\",\"1000.50\",\"0.5\",\"0.1\",\"0.4\",\"0.8\",\"0.9\",\"7.5\"\n"
	    "\"LPUSH (needed to benchmark LRANGE)\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n"
	    "\"LRANGE_100 (first 100 elements)\",\"20\",\"1\",\"1\",\"1\",\"1\",\"1\",\"2\"\n");
	REQUIRE(given.Benchmark());
	CHECK(given["run.SET.rps"] == 1000.5);
	CHECK(given["run.SET.mean"] == 500000);
	CHECK(given["run.SET.p99"] == 900000);
	CHECK(given["run.SET.max"] == 7500000);
	CHECK(given["run.LRANGE_100.rps"] == 20);
	CHECK(given.point.numbers.count("run.LPUSH.rps") == 0);
}

TEST_CASE("missing output of redis-benchmark is no result")
{
	for (const char *text : {"", "\"test\",\"rps\"\n", "\"SET\",\"100\"\n", "ERR unknown command\n"}) {
		Given given(text);
		CHECK_FALSE(given.Benchmark());
		CHECK(given.error == "redis-benchmark printed no results (" + given.path + ")");
	}
	Given given("\"SET\",\"1000.50\",\"0.5\",\"oops\",\"0.4\",\"0.8\",\"0.9\",\"7.5\"\n");
	CHECK_FALSE(given.Benchmark());
	CHECK(given.error == given.path + " is not output of redis-benchmark: \"oops\"");
}

TEST_CASE("figures of an explanation")
{
	Given given(kExplained);
	REQUIRE(given.Explained());
	CHECK(given["run.slow_from"] == 5000);
	CHECK(given["run.slow"] == 12);
	CHECK(given["run.cause.fork.percent"] == 60);
	CHECK(given["run.cause.run_queue.time"] == 250);
	CHECK(given["run.cause.fork.without_p99"] == 40);
	CHECK(given["run.explained_percent"] == Approx(85.5));
	CHECK(given["run.own.command_SET.percent"] == Approx(30));
	CHECK(given["run.hop.redis3.percent"] == 75);
	std::string causes = given.point.texts["run.causes"], worst = given.point.texts["run.worst"];
	CHECK(causes.rfind("fork 60", 0) == 0);
	CHECK(causes.find("steal") == std::string::npos); // too small to be named
	CHECK(given.point.texts["run.hops"].find("proxy") == std::string::npos);
	CHECK(given.point.texts["run.hops"].rfind("redis3 75", 0) == 0); // with the scenario's name
	CHECK(given["run.hop.redis3.percent"] == 75);
	CHECK(given.point.texts["run.longest"] == "fork 3.90 us");
	CHECK(worst.rfind("+2.250 s: 1,000 requests, worst ", 0) == 0);
	CHECK(worst.find("\n  it forked\n  and copied\n+1.500 s: ") != std::string::npos);
}

TEST_CASE("JSON of another kind is refused as an explanation")
{
	std::vector<std::string> damaged = {"{}", R"({"slow": null})"};
	for (const char *key : {"threshold_ns", "causes", "share", "what_if", "own_code", "name", "episodes",
				"worst_ns", "evidence", "t_s"})
		damaged.push_back(Damaged(kExplained, std::string("\"") + key + "\"", "\"other\""));
	damaged.push_back(Damaged(kExplained, "\"p99\": 40", "\"p99\": null"));
	damaged.push_back(Damaged(kExplained, "\"episodes\": [", "\"episodes\": 5, \"x\": ["));
	for (const std::string &text : damaged) {
		Given given(text);
		INFO(text);
		CHECK_FALSE(given.Explained());
		CHECK(given.error.rfind(given.path + " is not output of forktail explain: ", 0) == 0);
	}
	Given given(std::string(kExplained).substr(0, 200));
	CHECK_FALSE(given.Explained());
	CHECK(given.error == given.path + " does not contain JSON");
}

TEST_CASE("the time of a log's line")
{
	struct tm when = {};
	when.tm_year = 2026 - 1900;
	when.tm_mon = 10;
	when.tm_mday = 21;
	when.tm_hour = 12;
	when.tm_min = 39;
	when.tm_sec = 49;
	when.tm_isdst = -1;
	uint64_t expected_ns = static_cast<uint64_t>(mktime(&when)) * 1000000000 + 419000000;
	CHECK(TimeOfLine("1234:M 21 Nov 2026 12:39:49.419 * Ready to accept connections") == expected_ns);
	CHECK(TimeOfLine("1:X 21 Nov 2026 12:39:49.419 # +sdown master lab 127.0.0.1 10000") == expected_ns);
	for (const char *line :
	     {"", "nonsense", "1:M nonsense", "1:M 21 Nov 2026 12:39:49", "1:M 21 Nov 2026 12:39:49.4 *",
	      "1:M 41 Nov 2026 12:39:49.419 *", "1:M 21 Foo 2026 12:39:49.419 *", "                _._"}) {
		INFO(line);
		CHECK(TimeOfLine(line) == 0);
	}
}

TEST_CASE("the first matching line of a log after an instant")
{
	TempDir dir;
	std::string log = dir.file("log"), first = "1:M 21 Nov 2026 12:00:01.000 * saved",
		    second = "1:M 21 Nov 2026 12:00:02.500 * saved";
	write_file(log, "saved, without a time\n" + first + "\nnoise\n" + second +
			    "\n1:M 21 Nov 2026 12:00:03.000 * sav");
	CHECK(FindInLog(log, "saved", 1) == TimeOfLine(first));
	CHECK(FindInLog(log, "saved", TimeOfLine(first)) == TimeOfLine(first));
	CHECK(FindInLog(log, "saved", TimeOfLine(first) + 1) == TimeOfLine(second));
	CHECK(FindInLog(log, "saved", TimeOfLine(second) + 1) == 0);
	CHECK(FindInLog(log, "lost", 1) == 0);
	CHECK(FindInLog(dir.file("none"), "saved", 1) == 0);
}

TEST_CASE("words of a command line")
{
	using Words = std::vector<std::string>;
	auto split = [](const std::string &text) {
		Words words;
		REQUIRE(SplitWords(text, &words));
		return words;
	};
	CHECK(split("").empty());
	CHECK(split("  \t ").empty());
	CHECK(split(" -n 100\t-t  set ") == Words{"-n", "100", "-t", "set"});
	CHECK(split("eval 'return 1' \"a 'b'\"") == Words{"eval", "return 1", "a 'b'"});
	CHECK(split("a''b '' \"\"") == Words{"ab", "", ""});
	CHECK(split("--x='a b'c") == Words{"--x=a bc"});
	Words words;
	CHECK_FALSE(SplitWords("a 'b", &words));
	CHECK_FALSE(SplitWords("\"", &words));
}

TEST_CASE("an event at a share of a load is due in the load's own unit of time")
{
	StepSpec step;
	step.events.resize(3);
	step.events[0].at = "50%";
	step.events[1].at = "25%";
	step.events[2].at = "0s";
	const std::pair<const char *, double> kLoads[] = {{"500us", 500e-6}, {"20ms", 0.02}, {"4s", 4},
							  {"60", 60},	     {"2m", 120},    {"1h", 3600},
							  {"0.5h", 1800}};
	for (const auto &[duration, seconds] : kLoads) {
		INFO(duration);
		std::vector<TimedEvent> events =
		    EventTimes(step, {"--rate", "10", "--duration", duration, "-c", "2"});
		REQUIRE(events.size() == 3);
		CHECK(events[0] == TimedEvent(0, &step.events[2]));
		CHECK(events[1] == TimedEvent(seconds / 4, &step.events[1]));
		CHECK(events[2] == TimedEvent(seconds / 2, &step.events[0]));
	}
}
