// SPDX-License-Identifier: MIT
// Messages and their receivers, on real servers: each message is delivered as often as it should be, is an
// entry of the log with its publish's times, and a stalled server shows in deliveries.
#include <csignal>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

struct Run {
	Result result;
	Log log;
	Json figures;
	unsigned sent = 0, delivered = 1; // operations in the log
};

Run run_load(Redis &redis, const Arguments &more)
{
	TempDir dir;
	Arguments all = {"-s", redis.socket(), "-q", "-o", dir.file("log"), "--json", dir.file("json")};
	all.insert(all.end(), more.begin(), more.end());
	Run r;
	r.result = load(all);
	r.log = read_log(dir.file("log"));
	const std::string json = read_file(dir.file("json"));
	if (!json.empty())
		r.figures = parse_json(json)["runs"][0];
	return r;
}

// Due times of an operation's entries, in order.
std::vector<uint64_t> intended(const Log &log, unsigned op)
{
	std::vector<uint64_t> all;
	for (const ft_request &q : log.requests)
		if (q.op == op)
			all.push_back(q.intended_ns);
	std::sort(all.begin(), all.end());
	return all;
}

// Every sent message, `times` times, by its due time, which is unique in an open loop.
void check_each_delivered(const Run &r, size_t times)
{
	const auto sent = intended(r.log, r.sent), delivered = intended(r.log, r.delivered);
	REQUIRE(delivered.size() == sent.size() * times);
	for (size_t i = 0; i < delivered.size(); i++)
		REQUIRE(delivered[i] == sent[i / times]);
	for (const ft_request &q : r.log.requests) {
		REQUIRE(q.status == FT_STATUS_OK);
		REQUIRE(q.start_ns >= q.intended_ns);
		REQUIRE(q.end_ns > q.start_ns);
	}
}

void check_counts(const Run &r, uint64_t received)
{
	const Json d = r.figures["deliveries"];
	CHECK(d["expected"] == received);
	CHECK(d["received"] == received);
	CHECK(d["lost"] == 0);
	CHECK(d["duplicates"] == 0);
	CHECK(d["foreign"] == 0);
}

} // namespace

TEST_CASE("publish and subscribe: every subscriber gets every message, and each is an entry of the log")
{
	Redis redis;
	const Run r =
	    run_load(redis, {"--pubsub", "5:3", "--rate", "1000", "-n", "1500", "-c", "4", "-d", "200"});
	INFO(r.result.err);
	REQUIRE(r.result.status == 0);
	CHECK(r.log.manifest["ops"] == Json({"PUBLISH", "DELIVER"}));
	check_each_delivered(r, 5);
	check_counts(r, 7500);
	// Separate connections, each with its record: 4 that publish, 5 that listen.
	std::map<uint32_t, size_t> by_connection;
	for (const ft_request &q : r.log.requests)
		if (q.op == r.delivered)
			by_connection[q.connection]++;
	REQUIRE(by_connection.size() == 5);
	for (const auto &[id, count] : by_connection) {
		CHECK(count == 1500);
		REQUIRE(r.log.connections.count(id) == 1);
		CHECK(r.log.connections.at(id).closed_ns > r.log.connections.at(id).opened_ns);
	}
	CHECK(r.log.connections.size() == 9);
	// Figures like those of any operation.
	const Json operations = r.figures["operations"];
	CHECK(operations["PUBLISH"]["requests"] == 1500);
	CHECK(operations["DELIVER"]["requests"] == 7500);
	CHECK(r.figures["exact"] == true);
	std::vector<uint64_t> latencies;
	for (const ft_request &q : r.log.requests)
		if (q.op == r.delivered)
			latencies.push_back(q.end_ns - q.intended_ns);
	std::sort(latencies.begin(), latencies.end());
	CHECK(operations["DELIVER"]["latency_ns"]["p99"] == percentile(latencies, 99));
	CHECK(contains(r.result.out, "deliveries: 7500 of 7500 expected by 5 consumers, lost 0"));
	// The requested size, including the stamp.
	CHECK(operations["DELIVER"]["bytes"] == 7500 * 200);
}

TEST_CASE("also in a closed loop, over several threads, with warm-up and short values")
{
	Redis redis;
	const Run r =
	    run_load(redis, {"--pubsub", "2", "-n", "4000", "-c", "6", "--threads", "2", "-P", "3"});
	INFO(r.result.err);
	REQUIRE(r.result.status == 0);
	CHECK(r.log.with_op(0) == 4000);
	CHECK(r.log.with_op(1) == 8000);
	check_counts(r, 8000);
	const Run warm = run_load(
	    redis, {"--pubsub", "2", "--duration", "1", "--warmup", "500ms", "-c", "2", "--think", "2ms"});
	REQUIRE(warm.result.status == 0);
	CHECK(warm.log.with_op(1) == 2 * warm.log.with_op(0));
	const uint64_t counted = warm.figures["operations"]["PUBLISH"]["requests"];
	CHECK(counted < warm.log.with_op(0));
	check_counts(warm, 2 * counted);
}

TEST_CASE("hand-off by lists, streams and groups: each element to its receiver, exactly once")
{
	Redis redis;
	struct Kind {
		Arguments arguments;
		size_t times;
		const char *sends, *receives;
	};
	for (const Kind &k : {Kind{{"--handoff", "list"}, 1, "RPUSH", "BLPOP"},
			      Kind{{"--handoff", "list:3", "--consumers", "7"}, 1, "RPUSH", "BLPOP"},
			      Kind{{"--handoff", "stream:2", "--consumers", "6"}, 3, "XADD", "XREAD"},
			      Kind{{"--handoff", "group:2", "--consumers", "5"}, 1, "XADD", "XREADGROUP"}}) {
		redis.command({"FLUSHALL"});
		Arguments all = {"--rate", "2000", "-n", "2000", "-c", "4"};
		all.insert(all.end(), k.arguments.begin(), k.arguments.end());
		const Run r = run_load(redis, all);
		INFO(k.arguments.back() << ": " << r.result.err);
		REQUIRE(r.result.status == 0);
		CHECK(r.log.manifest["ops"] == Json({k.sends, k.receives}));
		check_each_delivered(r, k.times);
		check_counts(r, 2000 * k.times);
		if (std::string(k.sends) == "RPUSH")
			CHECK(redis.command({"DBSIZE"}) == "0");
	}
}

TEST_CASE("older elements in a queue are no messages of this run")
{
	Redis redis;
	redis.command({"RPUSH", "queue:000000000000", "old",
		       "forktail 00000000 000000000001 0000000000000000001 0000000000000000002 "});
	const Run r = run_load(redis, {"--handoff", "list", "-n", "100"});
	REQUIRE(r.result.status == 0);
	CHECK(r.figures["deliveries"]["foreign"] == 2);
	CHECK(r.figures["deliveries"]["received"] == 100);
	CHECK(contains(r.result.out, "unrelated messages 2"));
	// A stream's readers begin after the existing entries.
	redis.command({"XADD", "stream:000000000000", "*", "message", "old"});
	const Run s = run_load(redis, {"--handoff", "stream", "-n", "100"});
	REQUIRE(s.result.status == 0);
	CHECK(s.figures["deliveries"]["foreign"] == 0);
}

TEST_CASE("a stalled server shows in the deliveries, from the time each was due")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--pubsub", "3", "--rate", "1000", "--duration", "2",
				"-c", "5", "-q", "-o", dir.file("log")}));
	// Some of these are our own queries, at most two hundred per second.
	REQUIRE(eventually([&] { return std::stoul(redis.info("total_commands_processed")) > 400; },
			   Seconds(30)));
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.3));
	redis.process().signal(SIGCONT);
	REQUIRE(p.wait(Seconds(30)) == 0);
	Run r;
	r.log = read_log(dir.file("log"));
	check_each_delivered(r, 3);
	// 300 of 2000 messages were due meanwhile, from 0.3 s before its end to its end, three times each.
	size_t late = 0;
	for (const ft_request &q : r.log.requests)
		late += q.op == 1 && q.end_ns - q.intended_ns >= 100000000;
	CHECK(late >= 3 * 150);
}

TEST_CASE("broken subscribers are reopened, and the messages they missed are counted")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s",
				redis.socket(),
				"--pubsub",
				"3",
				"--rate",
				"1000",
				"--duration",
				"3",
				"-c",
				"4",
				"-q",
				"-o",
				dir.file("log"),
				"--json",
				dir.file("json"),
				"--on-error",
				"reconnect",
				"--backoff",
				"200ms",
				"--drain",
				"1"}));
	REQUIRE(eventually([&] {
		return contains(redis.command({"PUBSUB", "NUMSUB", "channel:000000000000"}), "3");
	}));
	sleep_for(Seconds(0.5));
	redis.command({"CLIENT", "KILL", "TYPE", "pubsub"});
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Json d = parse_json(read_file(dir.file("json")))["runs"][0]["deliveries"];
	CHECK(d["broken"].get<uint64_t>() >= 3);
	CHECK(d["expected"] == 9000);
	CHECK(d["lost"].get<uint64_t>() > 0);
	CHECK(d["lost"].get<uint64_t>() + d["received"].get<uint64_t>() == 9000);
	CHECK(contains(p.err(), "consumer connections were lost"));
	const Log log = read_log(dir.file("log"));
	CHECK(log.with_op(1) == d["received"]);
	// All three listened again before the end.
	std::set<uint32_t> at_the_end;
	const uint64_t last = intended(log, 0).back();
	for (const ft_request &q : log.requests)
		if (q.op == 1 && q.intended_ns == last)
			at_the_end.insert(q.connection);
	CHECK(at_the_end.size() == 3);
	// Readers of a stream know their position and miss nothing.
	Process s(load_command({"-s", redis.socket(), "--handoff", "stream", "--consumers", "2", "--rate",
				"1000", "--duration", "2", "-c", "4", "-q", "--json", dir.file("json"),
				"--on-error", "reconnect"}));
	REQUIRE(eventually([&] { return redis.info("blocked_clients") == "2"; }));
	sleep_for(Seconds(0.3));
	redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
	REQUIRE(s.wait(Seconds(30)) == 0);
	const Json stream = parse_json(read_file(dir.file("json")))["runs"][0]["deliveries"];
	CHECK(stream["broken"].get<uint64_t>() >= 2);
	CHECK(stream["lost"] == 0);
	CHECK(stream["received"].get<uint64_t>() >= stream["expected"].get<uint64_t>());
	CHECK(stream["duplicates"] == 0);
}

TEST_CASE("a consumer that may not set its name is reopened anyway")
{
	Redis redis;
	redis.command({"ACL", "SETUSER", "quiet", "on", ">secret", "~*", "&*", "+@all", "-client|setname"});
	TempDir dir;
	Process p(load_command({"-s",	     redis.socket(), "--user",	      "quiet",	    "--pubsub",
				"2",	     "--rate",	     "500",	      "--duration", "3",
				"-q",	     "-o",	     dir.file("log"), "--on-error", "reconnect",
				"--backoff", "10ms",	     "--drain",	      "1",	    "--no-observer"}),
		  with_environment({{"FORKTAIL_PASSWORD", "secret"}}));
	const auto subscribed = [&] {
		return contains(redis.command({"PUBSUB", "NUMSUB", "channel:000000000000"}), "2");
	};
	REQUIRE(eventually(subscribed));
	redis.command({"CLIENT", "KILL", "TYPE", "pubsub"});
	CHECK(eventually(subscribed, Seconds(2)));
	REQUIRE(p.wait(Seconds(30)) == 0);
	INFO(p.err());
	CHECK(contains(p.err(), "consumer connections were lost 2 times"));
}

TEST_CASE("repeats, limits and series treat deliveries as another operation")
{
	Redis redis;
	const Result r =
	    load({"-s", redis.socket(), "--handoff", "list:2", "-n", "500", "-c", "3", "--repeat", "2", "-q",
		  "--fail-if", "BLPOP.p99>0.000001ms", "--fail-if", "BLPOP.requests<1"});
	CHECK(r.status == 1);
	CHECK(contains(r.out, "deliveries: 500 of 500 expected by 2 consumers"));
	CHECK(lines(r.err) == 2); // the first limit is broken in each repeat, the second never
}

TEST_CASE("wrong usage: one sentence")
{
	const std::vector<Arguments> all = {
	    {"--pubsub", "0"},
	    {"--pubsub", "2:x"},
	    {"--pubsub", "2", "--consumers", "3"},
	    {"--pubsub", "2", "-t", "set"},
	    {"--pubsub", "2", "--blocking"},
	    {"--pubsub", "2", "-r", "10"},
	    {"--handoff", "queue"},
	    {"--handoff", "list:3", "--consumers", "2"},
	    {"--handoff", "stream:2", "--consumers", "3"},
	    {"--handoff", "list", "--replay", "x"},
	    {"--handoff", "list", "--protocol", "memcache_text"},
	    {"--consumers", "3"},
	};
	for (const Arguments &arguments : all) {
		const Result r = load(arguments);
		INFO(arguments.back() << ": " << r.err);
		CHECK(r.status == 2);
		CHECK(lines(r.err) == 1);
	}
}
