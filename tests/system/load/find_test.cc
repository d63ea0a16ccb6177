// SPDX-License-Identifier: MIT
// The search for a rate on real servers: one whose capacity is known because each command sleeps, limits that
// no rate can meet, and what is refused.
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

// Adds the server and short runs to the words of a search.
Result find(const Redis &redis, const std::string &limit, const Arguments &words)
{
	Arguments all = {"-s",		 redis.socket(), "--find",   limit, "--duration", "400ms",
			 "--warmup",	 "100ms",	 "--repeat", "2",   "--seed",	  "1",
			 "--no-observer"};
	all.insert(all.end(), words.begin(), words.end());
	return load(all, {}, Seconds(120));
}

} // namespace

TEST_CASE("a server that sleeps 10 ms per command takes at most 100 requests per second")
{
	Redis redis({.config = {"--enable-debug-command", "yes"}});
	TempDir dir;
	const Result r = find(redis, "p50 < 40ms",
			      {"--command", "DEBUG SLEEP 0.01", "-c", "8", "--json", dir.file("json"),
			       "--csv=" + dir.file("csv"), "-o", dir.file("log")});
	CAPTURE(r.out, r.err);
	REQUIRE(r.status == 0);
	const Json j = parse_json(read_file(dir.file("json")));
	const Json &search = j.at("search");
	CHECK(search.at("limit") == "p50 < 40ms");
	// On a busy host the runs may vary too much.
	CHECK((search.at("result") == "found" || search.at("result") == "undecided"));
	CHECK(search.at("closed_loop_per_s").get<double>() <= 101);
	const Json &highest = search.at("highest"), &beyond = search.at("beyond");
	CHECK(highest.at("rate").get<double>() <= 105); // answers may be 10 ms of 400 behind
	CHECK(highest.at("rate") < beyond.at("rate"));
	CHECK(2 * highest.at("held").get<int>() > highest.at("runs").get<int>());
	CHECK(2 * beyond.at("held").get<int>() < beyond.at("runs").get<int>());
	CHECK(highest.at("end_ns").get<uint64_t>() - highest.at("start_ns").get<uint64_t>() > 300000000);
	CHECK(contains(r.out, "<- highest"));
	char rate[32];
	snprintf(rate, sizeof rate, "%.10g", highest.at("rate").get<double>());
	CHECK(contains(r.out, "p50 < 40ms holds up to " + std::string(rate) + " requests/s"));

	// Each run says what it found, and the log has where each began.
	double previous = 0;
	for (const Json &point : search.at("curve")) {
		CHECK(point.at("rate").get<double>() > previous);
		previous = point.at("rate");
	}
	size_t runs = 0;
	for (const Json &run : j.at("runs")) {
		if (!run.contains("rate"))
			continue; // the closed loop
		runs++;
		CHECK(!run.at("why").get<std::string>().empty());
		if (run.at("held") == true)
			CHECK(run.at("total").at("latency_ns").at("p50") < 40000000);
	}
	CHECK(runs + 1 == j.at("runs").size());
	const std::string csv = read_file(dir.file("csv"));
	CHECK(csv.rfind("rate,requests_per_s,mean_ms,p50_ms,", 0) == 0);
	CHECK(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')) == search.at("curve").size() + 1);
	size_t starts = 0;
	for (const Json &note : read_log(dir.file("log")).notes)
		starts += note.at("kind") == "load-start" && note.at("rate").get<double>() > 0;
	CHECK(starts == runs);
}

TEST_CASE("a limit that no rate meets is answered with status 1")
{
	Redis redis;
	TempDir dir;
	const Result r = find(redis, "min < 1us",
			      {"--duration", "20ms", "--warmup", "5ms", "--rate", "4000", "-c", "2", "--json",
			       dir.file("json")});
	CHECK(r.status == 1);
	CHECK(contains(r.out, "at no rate down to "));
	const Json search = parse_json(read_file(dir.file("json"))).at("search");
	CHECK(search.at("result") == "none held");
	CHECK(!search.contains("highest"));
}

TEST_CASE("failed requests do not count as held, unless a limit allows them")
{
	Redis redis;
	const Arguments words = {"--command", "INCR text", "--rate", "500", "--duration", "50ms", "-c", "2"};
	redis.command({"SET", "text", "abc"});
	Result r = find(redis, "max < 10s", words);
	CHECK(r.status == 1);
	CHECK(contains(r.out, "at no rate down to"));
	CHECK(contains(r.out, "errors  held"));
	// Without a rate to begin with, the closed loop shows that every request fails.
	r = find(redis, "max < 10s", {"--command", "INCR text", "--duration", "50ms", "-c", "2"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "every request failed: ERR value is not an integer"));
	TempDir dir;
	Arguments allowed = words;
	allowed.insert(allowed.end(), {"--find", "errors < 101", "--json", dir.file("json")});
	r = find(redis, "max < 10s", allowed);
	const Json search = parse_json(read_file(dir.file("json"))).at("search");
	CHECK(search.at("limit") == "max < 10s and errors < 101");
	// 50 ms at 2,000/s are 100 errors.
	CHECK(search.at("highest").at("rate").get<double>() <= 2020);
}

TEST_CASE("a chart is drawn with gnuplot")
{
	if (run({"gnuplot", "--version"}).status != 0) {
		WARN("SKIPPED: gnuplot is not installed");
		return;
	}
	Redis redis;
	TempDir dir;
	const Result r =
	    find(redis, "p99 < 5s",
		 {"--rate", "400", "--duration", "50ms", "-c", "2", "--svg", dir.file("curve.svg")});
	CAPTURE(r.err);
	REQUIRE(r.status == 0);
	const std::string svg = read_file(dir.file("curve.svg"));
	CHECK(contains(svg, "<svg"));
	CHECK(contains(svg, "requests due per second"));
}

TEST_CASE("a search that cannot be made is refused before any request")
{
	Redis redis;
	const auto refused = [&](const std::string &limit, const Arguments &words,
				 const std::string &sentence) {
		Arguments all = {"-s", redis.socket(), "--find", limit};
		all.insert(all.end(), words.begin(), words.end());
		const Result r = load(all);
		CAPTURE(r.err);
		CHECK(r.status == 2);
		CHECK(contains(r.err, sentence));
	};
	refused("p99", {}, "has no comparison");
	refused("fork.share < 1%", {}, "needs a recording");
	refused("GETT.p99 < 1ms", {}, "--find: the load has no operation \"GETT\"");
	refused("p99 < 1ms", {"-t", "ping"}, "one test, but -t names 2");
	refused("p99 < 1ms", {"-n", "10"}, "Remove -n and -l");
	refused("p99 < 1ms", {"--fill", "10"}, "--fill sets N keys and stops");
	refused("p99 < 1ms", {"--pubsub", "2"}, "Remove --fill, --replay, --pubsub");
	refused("p99 < 1ms", {"--profile", "ramp:1-2x1s"}, "--profile changes it");
	refused("p99 < 1ms", {"--fail-if", "p99>1s"}, "--fail-if checks one");
	CHECK(load({"-s", redis.socket(), "--svg", "x.svg"}).status == 2);
	CHECK(redis.command({"INFO", "commandstats"}).find("cmdstat_get") == std::string::npos);
}
