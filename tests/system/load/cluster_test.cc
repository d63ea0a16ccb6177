// SPDX-License-Identifier: MIT
// Load on a real Redis Cluster of six nodes: which nodes requests go to, slots that move under the load, a
// primary that dies, and clusters that cannot be loaded.
#include <csignal>
#include <set>

#include "loadgen/cluster.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/cluster.h"
#include "tests/system/load/background.h"
#include "tests/system/load/clock.h"

using namespace forktail::test;

namespace
{

Arguments on(Cluster &c, const Arguments &more)
{
	Arguments all = {"--cluster", "--server", c.address(1), "-q", "--no-observer"};
	all.insert(all.end(), more.begin(), more.end());
	return all;
}

struct Run : BackgroundLoad {
	Run(Cluster &c, const Arguments &more) : BackgroundLoad(on(c, more)) {}
	uint64_t redirects(const char *kind) { return figures["redirects"][kind].get<uint64_t>(); }
};

// The sum of all counters, each read from its node.
uint64_t sum_of_counters(Cluster &c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < static_cast<size_t>(c.primaries()); i++) {
		const std::string all =
		    c.node(i).command({"EVAL",
				       "local s = 0 for _, k in ipairs(redis.call('KEYS', '*')) do s = s + "
				       "redis.call('GET', k) end "
				       "return s",
				       "0"});
		REQUIRE(all.rfind("(error)", 0) != 0);
		sum += std::stoull(all);
	}
	return sum;
}

} // namespace

TEST_CASE("each key goes to its node at once, and each node has its figures")
{
	Cluster c;
	TempDir dir;
	const Result r =
	    load(on(c, {"--command", "INCR __key__", "-r", "3000", "-n", "30000", "-c", "6", "-P", "3",
			"--threads", "2", "--json", dir.file("json"), "-o", dir.file("log")}));
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	CHECK(figures["total"]["errors"] == 0);
	CHECK(figures["redirects"]["moved"] == 0);
	REQUIRE(figures["nodes"].size() == 3);
	uint64_t sum = 0;
	for (const Json &n : figures["nodes"]) {
		CHECK(n["requests"].get<uint64_t>() > 5000);
		sum += n["requests"].get<uint64_t>();
	}
	CHECK(sum == 30000);
	CHECK(sum_of_counters(c) == 30000);
	CHECK(contains(r.out, c.address(0)));
	// Slots as a node computes them.
	for (int i = 0; i < 500; i++) {
		std::string key = "k" + std::to_string(i * 7919);
		if (i % 3 == 0)
			key = "{" + key + (i % 2 ? "}x" : "{}");
		CHECK(c.node(0).command({"CLUSTER", "KEYSLOT", key}) ==
		      std::to_string(cluster_slot(key.data(), key.size())));
	}
	CHECK(read_log(dir.file("log")).connections.size() == 18);
}

TEST_CASE("redis-benchmark's tests, keys of one command in one slot")
{
	Cluster c;
	TempDir dir;
	const Result r =
	    load(on(c, {"-t", "all", "-r", "200", "-n", "600", "-c", "3", "--json", dir.file("json")}));
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json runs = parse_json(read_file(dir.file("json")))["runs"];
	for (const Json &run : runs) {
		INFO(run["name"]);
		CHECK(run["total"]["requests"] == 600);
		CHECK(run["total"]["errors"] == 0);
		CHECK(run["redirects"]["moved"] == 0);
	}
	// Custom tags.
	const Result own = load(on(c, {"--command", "MGET {__tag__}:a {__tag__}:b", "--command",
				       "EVAL \"return redis.call('GET', KEYS[1])\" 1 script:__key_number__",
				       "-r", "1000", "-n", "1000", "-c", "2", "--json", dir.file("json")}));
	INFO(own.err);
	CHECK(own.status == 0);
	CHECK(parse_json(read_file(dir.file("json")))["runs"][0]["redirects"]["moved"] == 0);
}

TEST_CASE("slots move under the load: no request is lost, and none is done twice")
{
	Cluster c;
	Run run(c,
		{"--command", "INCR __key__", "-r", "2000", "--rate", "3000", "--duration", "12", "-c", "8"});
	run.under_way();
	c.move(0, 150, 0, 1);
	c.move(16000, 16150, 2, 0);
	c.move(0, 60, 1, 2);
	run.end();
	CHECK(run.status == 0);
	CHECK(run.figures["total"]["errors"] == 0);
	CHECK(run.figures["outages"].empty());
	CHECK(run.redirects("moved") > 0);
	CHECK(run.redirects("requests") > 0);
	CHECK(run.log.with_status(FT_STATUS_OK) == 36000);
	CHECK(sum_of_counters(c) == 36000);
	// Each is in the log once, with the time at which it was due.
	std::set<uint64_t> due;
	for (const ft_request &q : run.log.requests)
		due.insert(q.intended_ns);
	CHECK(due.size() == 36000);
	size_t moves = 0;
	for (const Json &n : run.log.notes)
		moves += n["kind"] == "topology" && n["what"] == "slots";
	CHECK(moves > 0);
}

TEST_CASE("a slot being moved: ASK is followed, without changing the slot's owner")
{
	Cluster c;
	// The slot of key number 0 begins to move, and its key is the first to move.
	const std::string key = "key:000000000000", slot = c.node(0).command({"CLUSTER", "KEYSLOT", key});
	size_t from = 0;
	while (c.node(from).command({"SET", key, "1"}) != "OK")
		from++;
	const size_t to = (from + 1) % 3;
	c.node(to).command({"CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(from)});
	c.node(from).command({"CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(to)});
	REQUIRE(c.node(from).command(
		    {"MIGRATE", "127.0.0.1", std::to_string(c.node(to).port()), key, "0", "5000"}) == "OK");
	Run run(c, {"--command", "INCR __key__", "-r", "1", "-n", "500", "-c", "2", "-P", "4"});
	run.end();
	CHECK(run.status == 0);
	CHECK(run.figures["total"]["errors"] == 0);
	CHECK(run.redirects("ask") == 500);
	CHECK(run.redirects("moved") == 0);
	c.node(to).command({"CLUSTER", "SETSLOT", slot, "NODE", c.id(to)});
	CHECK(c.node(to).command({"GET", key}) == "501");
}

TEST_CASE("a primary dies: its keys are back with its replica, and the gap is as long as the cluster says")
{
	// The cluster's log has its times in milliseconds of CLOCK_REALTIME. A busy machine may delay either
	// side, so one of three tries has to be as close as on an idle machine.
	double off_s = 1e9;
	for (int attempt = 0; attempt < 3 && off_s > 0.1; attempt++) {
		Cluster c(3, 2000);
		Run run(c, {"--rate", "2000", "--duration", "14", "-r", "10000", "-c", "8"});
		run.under_way();
		sleep_for(Seconds(1));
		c.node(0).process().signal(SIGKILL);
		run.end();
		CHECK(run.status == 0);
		CHECK(run.figures["total"]["requests"] == 28000);
		Json of_dead;
		for (const Json &o : run.figures["outages"])
			if (o["server"] == c.address(0))
				of_dead = o;
		REQUIRE(of_dead.is_object());
		CHECK(of_dead["after"] == c.address(3));
		CHECK(of_dead["failed"].get<uint64_t>() <= run.figures["total"]["errors"].get<uint64_t>());
		CHECK(of_dead["delayed"].get<uint64_t>() > 100);
		// Only requests on their way to the dead node have failed.
		CHECK(run.figures["total"]["errors"] == run.log.with_status(FT_STATUS_RESET));
		CHECK(run.figures["total"]["errors"].get<uint64_t>() <= 8);
		CHECK(of_dead["longest_ns"].get<uint64_t>() <= of_dead["gap_ns"].get<uint64_t>() + 100000000);
		for (const ft_request &q : run.log.requests)
			CHECK(q.start_ns >= q.intended_ns);

		const std::string log = c.node(3).log();
		const size_t won = log.find("Failover election won: I'm the new master");
		REQUIRE(won != std::string::npos);
		REQUIRE(!run.log.clocks.empty());
		off_s = seconds_of_day(run.log.clocks.front(), of_dead["first_ok_ns"].get<uint64_t>()) -
			seconds_of_day(log, won);
		// It cannot have answered for those keys before it was their primary.
		CHECK(off_s > -0.002);
		WARN("the first answer came " << off_s
					      << " s after the cluster's log says the replica took over");
	}
	CHECK(off_s <= 0.1);
}

TEST_CASE("reads go to replicas, writes do not")
{
	Cluster c;
	REQUIRE(load(on(c, {"--fill", "1000", "-c", "3"})).status == 0);
	REQUIRE(eventually([&] {
		uint64_t keys = 0;
		for (size_t i = 3; i < 6; i++)
			keys += std::stoull(c.node(i).command({"DBSIZE"}));
		return keys == 1000;
	}));
	// A node names replicas to clients once it knows their offsets.
	REQUIRE(eventually(
	    [&] {
		    const std::string slots = c.node(1).command({"CLUSTER", "SLOTS"});
		    for (size_t i = 3; i < 6; i++)
			    if (!contains(slots, std::to_string(c.node(i).port())))
				    return false;
		    return true;
	    },
	    Seconds(30)));
	for (const char *who : {"replica", "any", "nearest"}) {
		INFO(who);
		TempDir dir;
		const Result r = load(on(c, {"--ratio", "1:4", "-r", "1000", "-n", "6000", "-c", "4",
					     "--read-from", who, "--json", dir.file("json")}));
		INFO(r.err);
		REQUIRE(r.status == 0);
		const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
		CHECK(figures["total"]["errors"] == 0);
		CHECK(figures["total"]["misses"] == 0);
		CHECK(figures["redirects"]["moved"] == 0);
		uint64_t replicas = 0;
		for (const Json &n : figures["nodes"])
			for (size_t i = 3; i < 6; i++)
				if (n["server"] == c.address(i))
					replicas += n["requests"].get<uint64_t>();
		const uint64_t gets = figures["operations"]["GET"]["requests"].get<uint64_t>();
		if (std::string(who) == "replica")
			CHECK(replicas == gets);
		if (std::string(who) == "any")
			CHECK(std::abs(static_cast<double>(replicas) / static_cast<double>(gets) - 0.5) <
			      0.1);
	}
}

TEST_CASE("a server that is no cluster, or an unusable one, is reported in a sentence")
{
	RedisOptions tcp;
	tcp.tcp = true;
	Redis single(tcp);
	Result r = load({"--cluster", "-p", std::to_string(single.port()), "-q"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "cluster support disabled"));
	CHECK(lines(r.err) == 1);

	tcp.config = {"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())};
	Redis empty(tcp);
	r = load({"--cluster", "-p", std::to_string(empty.port()), "-q"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "serves no slot"));
	CHECK(lines(r.err) == 1);

	for (const Arguments &wrong :
	     {Arguments{"--cluster", "--blocking"}, Arguments{"--cluster", "--think", "1ms"},
	      Arguments{"--cluster", "--dbnum", "1"}, Arguments{"--cluster", "--ycsb", "E"},
	      Arguments{"--cluster", "--protocol", "memcache_text"}, Arguments{"--master", "x"},
	      Arguments{"--cluster", "--sentinel", "127.0.0.1"}}) {
		INFO(wrong.back());
		r = load(wrong);
		CHECK(r.status == 2);
		CHECK(lines(r.err) == 1);
	}
}
