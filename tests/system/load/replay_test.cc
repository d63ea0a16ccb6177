// SPDX-License-Identifier: MIT
// Recordings made by real servers, replayed on others: the resulting data is the same, requests are due at
// their times, and harmful commands are skipped.
#include <csignal>
#include <filesystem>

#include "loadgen/replay.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

const std::vector<std::string> debug = {"--enable-debug-command", "yes"};

RedisOptions with(std::vector<std::string> more, bool tcp = false)
{
	RedisOptions o;
	o.tcp = tcp;
	o.config = debug;
	o.config.insert(o.config.end(), more.begin(), more.end());
	return o;
}

std::string digest(Redis &redis)
{
	return redis.command({"DEBUG", "DIGEST"});
}

// The output of redis-cli monitor while `act` runs. Over TCP, so that a server can distinguish its clients.
template <class Act> std::string capture(Redis &redis, Act act)
{
	Process monitor({"redis-cli", "-p", std::to_string(redis.port()), "monitor"});
	REQUIRE(eventually([&] { return contains(monitor.out(), "OK"); }));
	act();
	redis.command({"ECHO", "the capture ends here"});
	REQUIRE(eventually([&] { return contains(monitor.out(), "the capture ends here"); }));
	monitor.signal(SIGTERM);
	monitor.wait(Seconds(10));
	return monitor.out();
}

// Offsets of a capture's lines from its first, as in MONITOR: whole microseconds.
std::vector<uint64_t> offsets(const std::string &text)
{
	std::vector<uint64_t> all;
	for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
		if (text[at] >= '0' && text[at] <= '9')
			all.push_back(std::stoull(text.substr(at, 10)) * 1000000000 +
				      std::stoull(text.substr(at + 11, 6)) * 1000);
	const uint64_t first = all.empty() ? 0 : all.front();
	for (uint64_t &v : all)
		v -= first;
	return all;
}

// Every type of value, small and large, in two databases.
void fill_with_all_types(Redis &redis)
{
	for (const int database : {0, 3}) {
		redis.command({"SELECT", std::to_string(database)});
		redis.command({"SET", "string", std::string("\0\r\n\"\xff", 5)});
		for (const char *n : {"1", "1000", "100000", "12345678901"})
			redis.command({"SET", std::string("int:") + n, n});
		redis.command({"SET", "compressible", std::string(5000, 'x')});
		redis.command({"SET", "expires", "v", "EX", "100000"});
		redis.command({"HSET", "hash", "f", "v"});
		redis.command({"SADD", "ints", "1", "2", "3"});
		redis.command({"ZADD", "zset", "1.5", "a", "-inf", "b", "inf", "c"});
		redis.command({"PFADD", "hll", "a", "b", "c"});
		for (int i = 0; i < 700; i++) {
			const std::string n = std::to_string(i);
			redis.command(
			    {"RPUSH", "list", "element " + n, std::string(static_cast<size_t>(i), 'y')});
			redis.command({"HSET", "big hash", "f" + n, std::string(70, 'z') + n});
			redis.command({"SADD", "set", "m" + n});
			redis.command({"ZADD", "big zset", n, "m" + n});
			redis.command({"XADD", "stream", n + "-1", "f", "v" + n});
		}
		redis.command({"XGROUP", "CREATE", "stream", "group", "0"});
		redis.command(
		    {"XREADGROUP", "GROUP", "group", "one", "COUNT", "9", "STREAMS", "stream", ">"});
		redis.command(
		    {"XREADGROUP", "GROUP", "group", "two", "COUNT", "5", "STREAMS", "stream", ">"});
		redis.command({"XACK", "stream", "group", "0-1", "1-1"});
	}
	redis.command({"SELECT", "0"});
	redis.command(
	    {"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
}

Json replay_json(const std::string &path)
{
	return parse_json(read_file(path))["replay"];
}

} // namespace

TEST_CASE("a capture of MONITOR at its own speed: the same data, and the same due times")
{
	Redis recorded(with({}, true)), empty(with({}));
	TempDir dir;
	const std::string text = capture(recorded, [&] {
		const std::string port = std::to_string(recorded.port());
		REQUIRE(load({"-p", port, "--rate", "2000", "--duration", "1", "-c", "8", "-r", "500", "-q",
			      "--ratio", "1:1"})
			    .status == 0);
		REQUIRE(
		    load({"-p", port, "--dbnum", "3", "-n", "300", "-c", "4", "-r", "50", "-q", "--command",
			  "HSET h:__int__ __field__ __data__", "--command", "INCRBY n:__int__ 3"})
			.status == 0);
		recorded.command({"EVAL", "return redis.call('INCR', 'by script')", "0"});
		recorded.command({"MULTI"});
		recorded.command({"SELECT", "5"});
		recorded.command({"SET", "in transaction", "1"});
		recorded.command({"EXEC"});
	});
	write_file(dir.file("monitor"), text);
	const Result r = load({"-s", empty.socket(), "--replay", dir.file("monitor"), "-q", "-o",
			       dir.file("log"), "--json", dir.file("json")});
	INFO(r.err << r.out);
	REQUIRE(r.status == 0);
	CHECK(digest(recorded) == digest(empty));
	const Log log = read_log(dir.file("log"));
	std::vector<uint64_t> due = offsets(text);
	const Json figures = replay_json(dir.file("json"));
	CHECK(figures["scripted"] == 1);
	REQUIRE(log.requests.size() == due.size() - 1);
	CHECK(log.with_status(FT_STATUS_OK) + log.with_status(FT_STATUS_MISS) == log.requests.size());
	// Only the script's own call is a line without a request.
	const auto got = log.schedule();
	size_t skipped = 0;
	for (size_t i = 0; i < got.size(); i++) {
		if (got[i] != due[i + skipped])
			skipped++;
		REQUIRE(got[i] == due[i + skipped]);
	}
	CHECK(skipped <= 1);
	for (const ft_request &q : log.requests)
		REQUIRE(q.start_ns >= q.intended_ns);
	// Our own SELECT belongs to no request.
	const Json ops = log.manifest["ops"];
	CHECK(std::find(ops.begin(), ops.end(), "EVAL") != ops.end());
	CHECK(contains(r.out, "replayed from monitor"));
	CHECK(contains(r.out, "omitted: 1 call from scripts"));
}

TEST_CASE("scaled, at full speed, shortened and at a rate")
{
	Redis redis(with({}));
	TempDir dir;
	std::string rows = "seconds,client,command\n";
	for (int i = 0; i < 400; i++)
		rows += std::to_string(i / 200) + "." + std::to_string(1000 + i % 200 * 5).substr(1) +
			",client-" + std::to_string(i % 7) + ",RPUSH,list:" + std::to_string(i % 7) + "," +
			std::to_string(i) + "\n";
	write_file(dir.file("csv"), rows);
	const auto run_with = [&](const Arguments &more) {
		Arguments all = {"-s", redis.socket(),	"--replay", dir.file("csv"), "-q",
				 "-o", dir.file("log"), "--json",   dir.file("json")};
		all.insert(all.end(), more.begin(), more.end());
		redis.command({"FLUSHALL"});
		const Result r = load(all);
		INFO(r.err);
		REQUIRE(r.status == 0);
		return read_log(dir.file("log"));
	};
	// Each client's commands in their order, however fast.
	const auto in_order = [&] {
		for (int i = 0; i < 7; i++) {
			std::string expected;
			for (int k = i; k < 400; k += 7)
				expected += (k == i ? "" : "\n") + std::to_string(k);
			std::string got = redis.command({"LRANGE", "list:" + std::to_string(i), "0", "-1"});
			while (!got.empty() && got.back() == '\n')
				got.pop_back();
			REQUIRE(got == expected);
		}
	};
	const Log four = run_with({"--replay-speed", "4"});
	auto due = four.schedule();
	REQUIRE(due.size() == 400);
	for (size_t i = 0; i < due.size(); i++)
		REQUIRE(due[i] == (i / 200 * 1000000000 + i % 200 * 5000000) / 4);
	in_order();
	const Log most = run_with({"--replay-speed", "max", "-c", "3", "--threads", "2", "-P", "10"});
	CHECK(most.requests.size() == 400);
	for (const ft_request &q : most.requests)
		REQUIRE(q.intended_ns == q.start_ns);
	in_order();
	CHECK(run_with({"--replay-speed", "max", "-n", "123"}).requests.size() == 123);
	CHECK(redis.command({"LLEN", "list:0"}) == "18"); // of 0 .. 122 every seventh
	due = run_with({"--rate", "1000", "--threads", "3", "-c", "3"}).schedule();
	REQUIRE(due.size() == 400);
	for (size_t i = 0; i < due.size(); i++)
		REQUIRE(due[i] == i * 1000000);
	in_order();
	const Log half = run_with({"--duration", "1"});
	CHECK(half.requests.size() == 200);
}

TEST_CASE("-l starts again when the recording ends")
{
	Redis redis(with({}));
	TempDir dir;
	write_file(dir.file("csv"), "0,a,INCR,n\n0.010,a,INCR,n\n0.020,b,INCR,n\n");
	for (const char *speed : {"original", "max"}) {
		redis.command({"FLUSHALL"});
		Process p(load_command({"-s", redis.socket(), "--replay", dir.file("csv"), "-l", "-q",
					"--replay-speed", speed, "-o", dir.file("log")}));
		REQUIRE(eventually(
		    [&] {
			    return std::atoi(redis.command({"GET", "n"}).c_str()) > 50;
		    },
		    Seconds(30)));
		p.signal(SIGINT);
		REQUIRE(p.wait(Seconds(30)) == 0);
		const Log log = read_log(dir.file("log"));
		CHECK(std::to_string(log.requests.size()) == redis.command({"GET", "n"}));
		if (std::string(speed) == "max")
			continue;
		const auto due = log.schedule();
		for (size_t i = 0; i < due.size(); i++)
			REQUIRE(due[i] == i * 10000000);
	}
}

TEST_CASE("an append-only file of every type: the same data")
{
	Redis recorded(with({"--appendonly", "yes", "--aof-timestamp-enabled", "yes"})), empty(with({}));
	TempDir dir;
	fill_with_all_types(recorded);
	const std::string aof = recorded.directory() + "/appendonlydir";
	const Result r = load({"-s", empty.socket(), "--replay", aof, "--replay-speed", "max", "-q", "--json",
			       dir.file("json")});
	INFO(r.err << r.out);
	REQUIRE(r.status == 0);
	CHECK(digest(recorded) == digest(empty));
	CHECK(contains(empty.command({"FUNCTION", "LIST"}), "lib"));
	CHECK(replay_json(dir.file("json"))["format"] == "aof");
}

TEST_CASE("a leading RDB is skipped to its last byte, whatever it contains, with a message")
{
	Redis recorded(with({"--appendonly", "yes"})), empty(with({}));
	TempDir dir;
	fill_with_all_types(recorded);
	recorded.command({"BGREWRITEAOF"});
	REQUIRE(eventually([&] {
		return recorded.info("aof_rewrite_in_progress") == "0" &&
		       recorded.info("aof_rewrite_scheduled") == "0";
	}));
	recorded.command({"SET", "behind", "the RDB"});
	std::string base, increment;
	for (const auto &e : std::filesystem::directory_iterator(recorded.directory() + "/appendonlydir")) {
		const std::string name = e.path().string();
		if (contains(name, ".base.rdb"))
			base = read_file(name);
		else if (contains(name, ".incr.aof"))
			increment = read_file(name);
	}
	REQUIRE(base.size() > 10000);
	rdb_facts facts;
	char error[160] = "";
	const std::string both = base + increment;
	CHECK(rdb_length(both.data(), both.data() + both.size(), &facts, error, sizeof(error)) ==
	      base.size());
	CHECK(facts.keys == 2 * 16);
	CHECK(facts.functions == 1);
	CHECK(std::to_string(facts.keys / 2 + 1) == recorded.command({"DBSIZE"}));
	// As older versions write it, in one file, and as a directory.
	write_file(dir.file("one.aof"), both);
	for (const std::string &path : {dir.file("one.aof"), recorded.directory() + "/appendonlydir"}) {
		empty.command({"FLUSHALL"});
		const Result r =
		    load({"-s", empty.socket(), "--replay", path, "-q", "--json", dir.file("json")});
		INFO(r.err);
		REQUIRE(r.status == 0);
		CHECK(contains(r.out,
			       "skipped: an RDB of " + std::to_string(base.size()) + " bytes with 32 keys"));
		CHECK(empty.command({"GET", "behind"}) == "the RDB");
		CHECK(empty.command({"DBSIZE"}) == "1");
		CHECK(replay_json(dir.file("json"))["preamble_bytes"] == base.size());
	}
}

TEST_CASE("harmful commands are skipped with a message; if allowed, they are sent")
{
	Redis redis(with({}));
	TempDir dir;
	write_file(dir.file("csv"),
		   "0,a,SET,k,v\n0,a,FLUSHALL\n0,a,CONFIG,SET,maxclients,77\n0,a,SHUTDOWN,NOSAVE\n"
		   "0,b,BLPOP,none,0\n0,a,SUBSCRIBE,x\n");
	const Result safe = load({"-s", redis.socket(), "--replay", dir.file("csv"), "-q"});
	REQUIRE(safe.status == 0);
	CHECK(redis.command({"GET", "k"}) == "v");
	CHECK(contains(safe.out, "FLUSHALL 1 (loses data)"));
	CHECK(contains(safe.out, "SHUTDOWN 1 (can stop the server)"));
	CHECK(contains(safe.out, "BLPOP 1 (blocks without limit)"));
	CHECK(contains(safe.out, "SUBSCRIBE 1 (changes the replies on its connection)"));
	CHECK(contains(redis.command({"CONFIG", "GET", "maxclients"}), "10000"));
	REQUIRE(load({"-s", redis.socket(), "--replay", dir.file("csv"), "-q", "--replay-allow",
		      "flushall,config"})
		    .status == 0);
	CHECK(redis.command({"GET", "k"}) == "(nil)");
	CHECK(contains(redis.command({"CONFIG", "GET", "maxclients"}), "77"));
}

TEST_CASE("a damaged recording is replayed up to the damage; a cut tail is no failure")
{
	Redis redis(with({}));
	TempDir dir;
	write_file(dir.file("cut"), "1.0 [0 a:1] \"set\" \"k\" \"1\"\n1.1 [0 a:1] \"set\" \"k\" \"2");
	const Result cut = load({"-s", redis.socket(), "--replay", dir.file("cut"), "-q"});
	CHECK(cut.status == 0);
	CHECK(contains(cut.err, "line 2"));
	CHECK(lines(cut.err) == 1);
	CHECK(redis.command({"GET", "k"}) == "1");
	write_file(dir.file("bad"),
		   "1.0 [0 a:1] \"set\" \"k\" \"3\"\nnonsense\n1.1 [0 a:1] \"set\" \"k\" \"4\"\n");
	const Result bad = load({"-s", redis.socket(), "--replay", dir.file("bad"), "-q"});
	CHECK(bad.status == 3);
	CHECK(lines(bad.err) == 1);
	CHECK(redis.command({"GET", "k"}) == "3");
}

TEST_CASE("a server without the recording's databases receives nothing in a wrong one")
{
	Redis redis(with({"--databases", "2"}));
	TempDir dir;
	write_file(dir.file("monitor"),
		   "1.0 [1 a:1] \"set\" \"k\" \"1\"\n1.1 [7 b:1] \"set\" \"k\" \"7\"\n"
		   "1.1 [0 a:1] \"set\" \"zero\" \"1\"\n1.2 [7 b:1] \"set\" \"k\" \"8\"\n");
	// Its own SELECT is refused: what follows it does not go to the database before.
	write_file(dir.file("csv"), "0,a,SELECT,1\n0,a,SET,k,1\n0,a,SELECT,7\n0,a,SET,k,7\n0,b,SET,zero,1\n");
	for (const auto &[file, speed] : {std::pair("monitor", "1"), std::pair("monitor", "max"),
					  std::pair("csv", "1"), std::pair("csv", "max")}) {
		INFO(file << ' ' << speed);
		redis.command({"FLUSHALL"});
		const Result r = load({"-s", redis.socket(), "--replay", dir.file(file), "-q", "-P", "4",
				       "--replay-speed", speed});
		CHECK(r.status == 3);
		CHECK(contains(r.err, "refused database 7"));
		CHECK(redis.command({"KEYS", "*"}) == redis.command({"ECHO", "zero"}));
		redis.command({"SELECT", "1"});
		CHECK(redis.command({"GET", "k"}) == "1");
		redis.command({"SELECT", "0"});
	}
}

TEST_CASE("a stalled server is charged from when commands were due")
{
	Redis redis(with({}));
	TempDir dir;
	std::string rows;
	for (int i = 0; i < 2000; i++)
		rows += std::to_string(i / 1000) + "." + std::to_string(1000 + i % 1000).substr(1) + ",c" +
			std::to_string(i % 5) + ",INCR,n\n";
	write_file(dir.file("csv"), rows);
	Process p(
	    load_command({"-s", redis.socket(), "--replay", dir.file("csv"), "-q", "-o", dir.file("log")}));
	REQUIRE(eventually(
	    [&] {
		    return std::atoi(redis.command({"GET", "n"}).c_str()) > 300;
	    },
	    Seconds(30)));
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.4));
	redis.process().signal(SIGCONT);
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Log log = read_log(dir.file("log"));
	REQUIRE(log.requests.size() == 2000);
	CHECK(redis.command({"GET", "n"}) == "2000");
	const auto due = log.schedule();
	for (size_t i = 0; i < due.size(); i++)
		REQUIRE(due[i] == i * 1000000);
	// 400 of them were due meanwhile, from 0.4 s before its end to its end.
	const auto latencies = log.latencies();
	CHECK(latencies.back() >= 390000000);
	CHECK(percentile(latencies, 95) >= 250000000);
}

TEST_CASE("broken connections: with reconnect the rest is sent, without it a message reports it")
{
	Redis redis(with({}));
	TempDir dir;
	std::string rows;
	for (int i = 0; i < 1500; i++)
		rows += std::to_string(i / 500) + "." + std::to_string(1000 + i % 500 * 2).substr(1) + ",c" +
			std::to_string(i % 4) + ",SET,k" + std::to_string(i) + ",v\n";
	write_file(dir.file("csv"), rows);
	Process p(load_command({"-s", redis.socket(), "--replay", dir.file("csv"), "-q", "--on-error",
				"reconnect", "-o", dir.file("log")}));
	REQUIRE(eventually([&] { return redis.command({"EXISTS", "k200"}) == "1"; }, Seconds(30)));
	redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Log log = read_log(dir.file("log"));
	CHECK(log.requests.size() == 1500);
	CHECK(std::stoul(redis.command({"DBSIZE"})) >= log.with_status(FT_STATUS_OK));
	CHECK(log.with_status(FT_STATUS_RESET) <= 4);
	CHECK(redis.command({"EXISTS", "k1499"}) == "1");
}

TEST_CASE("a recording of one instant, repeated, ends with Ctrl-C")
{
	Redis redis(with({}));
	TempDir dir;
	write_file(dir.file("csv"), "0,a,INCR,n\n0,b,INCR,n\n");
	Process p(load_command({"-s", redis.socket(), "--replay", dir.file("csv"), "-l", "-q"}));
	REQUIRE(eventually([&] { return std::atoi(redis.command({"GET", "n"}).c_str()) >= 4; }, Seconds(30)));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(30)) == 0);
}

TEST_CASE("a connection that breaks at our SELECT is as fast as before once it is back")
{
	// Answers the last two only when both have arrived, as -P 2 sends them.
	FakeServer server(after_greeting([](Peer &peer, const std::string &request) {
		if (contains(request, "SELECT\r\n$1\r\n0")) {
			peer.say("+OK\r\n"); // for the SET ahead of it
			return false;
		}
		if (contains(request, "GET"))
			return !contains(request, "x") || !contains(request, "y") ||
			       peer.say("$1\r\na\r\n$1\r\nb\r\n");
		return peer.say("+OK\r\n");
	}));
	TempDir dir;
	write_file(dir.file("monitor"), "1.0 [1 a:1] \"SET\" \"k\" \"1\"\n1.0 [0 a:1] \"GET\" \"x\"\n"
					"1.0 [0 a:1] \"GET\" \"y\"\n");
	const Result r =
	    load(server.where({"--replay", dir.file("monitor"), "--replay-speed", "max", "-c", "1", "-P", "2",
			       "-q", "--no-observer", "-o", dir.file("log"), "--on-error", "reconnect",
			       "--backoff", "1ms", "--timeout", "5s"}));
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(read_log(dir.file("log")).with_status(FT_STATUS_OK) == 3);
}

TEST_CASE("wrong usage and no recording: one sentence")
{
	TempDir dir;
	write_file(dir.file("csv"), "0,a,PING\n");
	const std::vector<std::pair<Arguments, int>> all = {
	    {{"--replay", dir.file("csv"), "-t", "set"}, 2},
	    {{"--replay", dir.file("csv"), "-d", "100"}, 2},
	    {{"--replay", dir.file("csv"), "--blocking"}, 2},
	    {{"--replay", dir.file("csv"), "--reconnect", "5"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-speed", "0"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-format", "rdb"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-allow", "get"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-allow", "monitor"}, 2},
	    {{"--replay", dir.file("csv"), "--rate", "5", "--replay-speed", "2"}, 2},
	    {{"--replay", dir.file("csv"), "--protocol", "memcache_text"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-order", "time"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-sample", "0%"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-sample", "101%"}, 2},
	    {{"--replay", dir.file("csv"), "--replay-sample", "half"}, 2},
	    {{"--replay", dir.file("csv"), "--cluster", "-P", "2"}, 2},
	    {{"--replay", dir.file("csv"), "--cluster", "--read-from", "any"}, 2},
	    {{"--replay", dir.file("csv"), "--sentinel", "127.0.0.1"}, 2},
	    {{"--replay", dir.file("csv"), "--server", "a", "--server", "b"}, 2},
	    {{"--replay", dir.file("csv"), "--wait", "1"}, 2},
	    {{"--replay-speed", "2"}, 2},
	    {{"--replay-order", "key"}, 2},
	    {{"--replay-sample", "5"}, 2},
	    {{"--replay", dir.file("none")}, 3},
	    {{"--replay", dir.path()}, 3},
	    {{"--replay", "/dev/null"}, 3},
	    {{"--replay", dir.file("csv"), "--replay-format", "monitor"}, 3},
	};
	for (const auto &[arguments, status] : all) {
		const Result r = load(arguments);
		INFO(arguments.back() << ": " << r.err);
		CHECK(r.status == status);
		CHECK(lines(r.err) == 1);
		CHECK(r.out.empty());
	}
}
