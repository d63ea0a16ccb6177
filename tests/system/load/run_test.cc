// SPDX-License-Identifier: MIT
// forktail-load on a real redis-server: every option does what the manual says, and table, JSON and log are
// consistent.
#include <set>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

// One run against `redis` with log and JSON, which must end with this status.
struct Run {
	TempDir dir;
	Result result;
	Log log;
	Json json, figures; // the whole file, and its first run

	Run(const Redis &redis, Arguments arguments, const ProcessOptions &options = {}, bool tcp = false,
	    int status = 0)
	{
		if (tcp)
			arguments.insert(arguments.end(), {"-p", std::to_string(redis.port())});
		else
			arguments.insert(arguments.end(), {"-s", redis.socket()});
		arguments.insert(arguments.end(), {"-o", dir.file("log"), "--json", dir.file("json")});
		result = load(arguments, options);
		INFO(result.err);
		REQUIRE(result.status == status);
		log = read_log(dir.file("log"));
		REQUIRE(log.error == "");
		json = parse_json(read_file(dir.file("json")));
		figures = json["runs"][0];
	}
};

int calls(Redis &redis, const std::string &command)
{
	const std::string stats = redis.info("cmdstat_" + command);
	return stats.empty() ? 0 : std::stoi(stats.substr(stats.find('=') + 1));
}

} // namespace

TEST_CASE("the log has every request, and table and JSON equal it")
{
	Redis redis;
	Run run(redis, {"-n", "20000", "-r", "1000", "--ratio", "1:4", "-c", "10", "-q", "--seed", "5"});
	const Log &log = run.log;
	CHECK(log.whole());
	CHECK(log.drops.empty());
	REQUIRE(log.requests.size() == 20000);
	CHECK(run.figures["total"]["requests"] == 20000);
	CHECK(run.figures["total"]["errors"] == 0);
	CHECK(run.figures["exact"] == true);
	CHECK(run.figures["operations"]["GET"]["requests"] == log.with_op(0));
	CHECK(run.figures["operations"]["SET"]["requests"] == log.with_op(1));
	CHECK(run.figures["operations"]["GET"]["misses"] == log.with_status(FT_STATUS_MISS));
	CHECK(log.with_op(1) == static_cast<size_t>(calls(redis, "set")));
	CHECK(log.with_op(0) == static_cast<size_t>(calls(redis, "get")));
	CHECK(static_cast<double>(log.with_op(1)) == Approx(4000).epsilon(0.1));

	const auto sorted = log.latencies();
	const Json &latency = run.figures["total"]["latency_ns"];
	CHECK(latency["min"] == sorted.front());
	CHECK(latency["max"] == sorted.back());
	double sum = 0;
	for (uint64_t v : sorted)
		sum += static_cast<double>(v);
	CHECK(latency["mean"].get<double>() == Approx(sum / 20000).epsilon(1e-6));
	for (const auto &[name, p] : std::map<std::string, double>{
		 {"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}})
		CHECK(latency[name] == percentile(sorted, p));
	char p99[32];
	snprintf(p99, sizeof(p99), "%.3f", latency["p99"].get<double>() * 1e-6);
	CHECK(contains(run.result.out, p99));
	for (const char *row : {"requests/s", "MB/s", "average", "minimum", "p99.99", "maximum",
				"standard deviation", "exact, from the log"})
		CHECK(contains(run.result.out, row));
	CHECK(run.result.err.empty());

	// Times are in order, in a closed loop due when sent, and within the connection's lifetime.
	REQUIRE(log.connections.size() == 10);
	std::set<uint32_t> used;
	std::set<uint64_t> inodes;
	for (const auto &[id, c] : log.connections)
		inodes.insert(c.inode);
	CHECK(inodes.size() == 10);
	CHECK(inodes.count(0) == 0);
	for (const ft_request &q : log.requests) {
		REQUIRE(q.intended_ns == q.start_ns);
		REQUIRE(q.start_ns < q.end_ns);
		REQUIRE(log.connections.count(q.connection) == 1);
		const ft_connection &c = log.connections.at(q.connection);
		REQUIRE((q.start_ns > c.opened_ns && q.end_ns <= c.closed_ns));
		used.insert(q.connection);
	}
	CHECK(used.size() == 10);
	CHECK(!log.clocks.empty());
	CHECK(log.summary["reason"] == "done");
	CHECK(log.summary["runs"] == run.json["runs"]);
	CHECK(log.manifest["program"] == "forktail-load");
	CHECK(log.manifest["ops"] == Json({"GET", "SET"}));
	CHECK(log.manifest["commands"] == log.manifest["ops"]);
	CHECK(log.manifest["servers"][0] == "unix:" + redis.socket());
	CHECK(log.manifest["server_info"][0]["pid"] == redis.pid());
	CHECK(log.manifest["server_info"][0]["version"] == redis.info("redis_version"));
	CHECK(log.manifest["arrival"] == "closed");
	CHECK(log.manifest["seed"] == 5);
	char boot_id[40];
	ft_boot_id(boot_id);
	CHECK(log.manifest["boot_id"] == boot_id);
}

TEST_CASE("without a log the percentiles are the histogram's")
{
	Redis redis;
	const Result r = load({"-s", redis.socket(), "-n", "2000"});
	CHECK(r.status == 0);
	CHECK(contains(r.out, "0.1 %"));
	CHECK(calls(redis, "get") + calls(redis, "set") == 2000);
}

TEST_CASE("the letters of redis-benchmark: n, d, r, P, c, t, q, s, dbnum")
{
	Redis redis;
	Run run(redis, {"-t", "set", "-n", "5000", "-d", "77", "-r", "50", "-P", "16", "-c", "3", "-q",
			"--dbnum", "5"});
	CHECK(calls(redis, "set") == 5000);
	CHECK(calls(redis, "get") == 0);
	CHECK(run.log.connections.size() == 3);
	CHECK(redis.command({"DBSIZE"}) == "0");
	redis.command({"SELECT", "5"});
	CHECK(redis.command({"DBSIZE"}) == "50");
	for (const char *key : {"key:000000000000", "key:000000000049"})
		CHECK(redis.command({"STRLEN", key}) == "77");
	CHECK(run.log.manifest["server_info"][0]["database"] == 5);

	// A connection has at most 16 outstanding requests, and reaches that number.
	std::map<uint32_t, std::map<uint64_t, int>> batches;
	for (const ft_request &q : run.log.requests)
		batches[q.connection][q.start_ns]++;
	int most = 0;
	for (const auto &[id, starts] : batches)
		for (const auto &[start, n] : starts)
			most = std::max(most, n);
	CHECK(most == 16);
}

TEST_CASE("-t runs one test after the other, SET before GET, each with its own table")
{
	Redis redis;
	Run run(redis, {"-t", "get,SET", "-n", "1000", "-q"});
	REQUIRE(run.json["runs"].size() == 2);
	CHECK(run.json["runs"][0]["name"] == "SET");
	CHECK(run.json["runs"][1]["name"] == "GET");
	CHECK(run.json["runs"][1]["total"]["misses"] == 0);
	CHECK(run.json["runs"][1]["exact"] == true);
	CHECK(run.json["runs"][0]["end_ns"] <= run.json["runs"][1]["start_ns"]);
	CHECK(run.log.requests.size() == 2000);
	CHECK(contains(run.result.out, "SET, 50 connections"));
	CHECK(contains(run.result.out, "GET, 50 connections"));
	// Connections continue to be numbered, so that the log distinguishes the tests.
	CHECK(run.log.connections.size() == 100);
}

TEST_CASE("without -r there is one key")
{
	Redis redis;
	Run run(redis, {"-t", "set", "-n", "1000", "-q"});
	CHECK(redis.command({"KEYS", "*"}) == "key:000000000000");
	CHECK(redis.command({"STRLEN", "key:000000000000"}) == "3");
}

TEST_CASE("a duration ends the run, a number of requests ends it sooner")
{
	Redis redis;
	Run timed(redis, {"--duration", "700ms", "-q", "-c", "4"});
	CHECK(timed.figures["seconds"].get<double>() == Approx(0.7).margin(0.5));
	for (const ft_request &q : timed.log.requests)
		REQUIRE(q.status <= FT_STATUS_MISS);
	Run counted(redis, {"--duration", "60", "-n", "500", "-q"});
	CHECK(counted.log.requests.size() == 500);
}

TEST_CASE("threads share connections and requests")
{
	Redis redis;
	Run run(redis, {"--threads", "3", "-c", "8", "-n", "10001", "-q", "-P", "4"});
	CHECK(run.log.requests.size() == 10001);
	REQUIRE(run.log.connections.size() == 8);
	std::map<uint32_t, int> per_thread;
	for (const auto &[id, c] : run.log.connections)
		per_thread[c.thread]++;
	CHECK(per_thread == std::map<uint32_t, int>{{0, 3}, {1, 3}, {2, 2}});
	std::vector<Json> starts; // in addition to the observer's
	for (const Json &note : run.log.notes)
		if (note["kind"] == "load-start")
			starts.push_back(note);
	REQUIRE(starts.size() == 1);
	CHECK(starts[0]["tids"].size() == 3);
}

TEST_CASE("TCP over IPv4 and IPv6, by address and by name")
{
	Redis redis({.tcp = true, .config = {"--bind", "127.0.0.1", "-::1"}});
	Run four(redis, {"-n", "1000", "-q", "-c", "2"}, {}, true);
	CHECK(four.log.requests.size() == 1000);
	CHECK(four.log.manifest["servers"][0] == "127.0.0.1:" + std::to_string(redis.port()));
	for (const auto &[id, c] : four.log.connections)
		CHECK(c.local_port > 1023);
	Run name(redis, {"-n", "1000", "-q", "-h", "localhost"}, {}, true);
	CHECK(name.log.requests.size() == 1000);
	if (read_file("/proc/net/if_inet6").empty()) {
		WARN("SKIPPED IPv6: this host has none");
		return;
	}
	Run six(redis, {"-n", "1000", "-q", "-h", "::1"}, {}, true);
	CHECK(six.log.requests.size() == 1000);
	CHECK(six.log.manifest["servers"][0] == "[::1]:" + std::to_string(redis.port()));
}

TEST_CASE("--fill sets each key once, in order, and prints how fast")
{
	Redis redis;
	Run run(redis, {"--fill", "10007", "-d", "20", "--threads", "2", "-q"});
	CHECK(calls(redis, "set") == 10007);
	CHECK(redis.command({"DBSIZE"}) == "10007");
	CHECK(redis.command({"STRLEN", "key:000000000000"}) == "20");
	CHECK(redis.command({"STRLEN", "key:000000010006"}) == "20");
	CHECK(run.figures["name"] == "fill");
	CHECK(run.log.manifest["fill"] == 10007);
	CHECK(run.log.manifest["pipeline"] == 64);
}

TEST_CASE("a password comes from the environment or a file, and is not shown anywhere else")
{
	Redis redis({.tcp = false, .config = {"--requirepass", "pass word"}});
	TempDir dir;
	write_file(dir.file("password"), "pass word\nsecond line\n");
	const Arguments some = {"-n", "500", "-q"};
	Run ours(redis, some, with_environment({{"FORKTAIL_PASSWORD", "pass word"}}));
	CHECK(ours.log.requests.size() == 500);
	Run cli(redis, some, with_environment({{"REDISCLI_AUTH", "pass word"}}));
	CHECK(cli.log.requests.size() == 500);
	Run first(redis, some,
		  with_environment({{"FORKTAIL_PASSWORD", "pass word"}, {"REDISCLI_AUTH", "another"}}));
	CHECK(first.log.requests.size() == 500);
	Run file(redis, {"-n", "500", "-q", "--password-file", dir.file("password")});
	CHECK(file.log.requests.size() == 500);
	for (const Run *r : {&ours, &cli, &first, &file}) {
		CHECK_FALSE(contains(read_file(r->dir.file("log")), "pass word"));
		CHECK_FALSE(contains(read_file(r->dir.file("json")), "pass word"));
		CHECK_FALSE(contains(r->result.out + r->result.err, "pass word"));
	}
}

TEST_CASE("an ACL user logs in by name, also one that may only use GET and SET")
{
	Redis redis;
	redis.command({"ACL", "SETUSER", "alice", "on", ">secret", "~*", "-@all", "+get", "+set"});
	redis.command({"ACL", "SETUSER", "default", "off"});
	Run run(redis, {"-n", "500", "-q", "--user", "alice"},
		with_environment({{"FORKTAIL_PASSWORD", "secret"}}));
	CHECK(run.log.requests.size() == 500);
	CHECK(run.figures["total"]["errors"] == 0);
	CHECK(run.log.manifest["server_info"][0]["user"] == "alice");
}

TEST_CASE("a seed repeats the keys, another one does not")
{
	std::vector<std::string> keys;
	for (const char *seed : {"1", "1", "2"}) {
		Redis redis;
		Run run(redis, {"-t", "set", "-n", "200", "-r", "1000000", "-c", "7", "-q", "--seed", seed});
		const std::string all = redis.command({"KEYS", "*"});
		std::set<std::string> sorted;
		for (size_t at = 0; at < all.size(); at += 17)
			sorted.insert(all.substr(at, 16));
		keys.push_back("");
		for (const auto &key : sorted)
			keys.back() += key;
		CHECK(sorted.size() > 190);
	}
	CHECK(keys[0] == keys[1]);
	CHECK(keys[0] != keys[2]);
}

TEST_CASE("misses are no errors, error replies are counted by their first word")
{
	Redis redis;
	Run missing(redis, {"-t", "get", "-n", "1000", "-r", "100", "-q"});
	CHECK(missing.figures["total"]["misses"] == 1000);
	CHECK(missing.figures["total"]["errors"] == 0);
	CHECK(missing.log.with_status(FT_STATUS_MISS) == 1000);
	redis.command({"LPUSH", "key:000000000000", "x"});
	Run wrong(redis, {"-t", "get", "-n", "1000", "-q", "-P", "7"}, {}, false, 3);
	CHECK(wrong.figures["total"]["errors"] == 1000);
	CHECK(wrong.figures["error_replies"]["WRONGTYPE"] == 1000);
	CHECK(wrong.figures["total"]["errors_by_kind"]["error reply"] == 1000);
	CHECK(wrong.log.with_status(FT_STATUS_ERROR_REPLY) == 1000);
	CHECK(contains(wrong.result.out, "-WRONGTYPE"));
}

TEST_CASE("replies larger than the read buffer, requests larger than the socket's")
{
	Redis redis({.tcp = true, .config = {}});
	Run set(redis, {"-t", "set", "-n", "300", "-d", "1000000", "-P", "8", "-c", "3", "-q"}, {}, true);
	CHECK(set.figures["total"]["errors"] == 0);
	CHECK(redis.command({"STRLEN", "key:000000000000"}) == "1000000");
	Run get(redis, {"-t", "get", "-n", "300", "-P", "8", "-c", "3", "-q"});
	CHECK(get.figures["total"]["errors"] == 0);
	CHECK(get.figures["total"]["bytes"].get<uint64_t>() > 300000000);
}

TEST_CASE("--progress prints a line each second; without it only a terminal gets one")
{
	Redis redis;
	CHECK(load({"-s", redis.socket(), "--duration", "1200ms", "--rate", "500"}).err == "");
	Result r = load({"-s", redis.socket(), "--duration", "2200ms", "--rate", "500", "--progress"});
	CHECK(r.status == 0);
	CHECK(lines(r.err) >= 2);
	CHECK(lines(r.err) <= 4);
	for (const char *part : {"/s", "p50", "p99", "max", "errors 0", "ETA"})
		CHECK(contains(r.err, part));
	CHECK_FALSE(contains(r.err, "\r"));
}
