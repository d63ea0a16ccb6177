// SPDX-License-Identifier: MIT
// Errors: how --on-error handles a server that dies, hangs, comes back, refuses or answers with errors. No
// error is missing in the figures and the log, and each is counted in its class, with the time of the first
// and the last.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/load/background.h"
#include "tests/system/load/fake.h"

using namespace forktail::test;

namespace
{

uint64_t now_ns()
{
	return ft_now_ns();
}

// A redis-server that dies and comes back at the same socket.
struct MortalRedis {
	TempDir dir;
	std::unique_ptr<Redis> redis;

	MortalRedis() { start(); }
	std::string socket() const { return redis->socket(); }
	void start() { redis = std::make_unique<Redis>(RedisOptions{.directory = dir.path()}); }
	void kill()
	{
		redis->signal(SIGKILL);
		redis->wait(Seconds(10));
	}
};

Arguments joined(Arguments first, const Arguments &then)
{
	first.insert(first.end(), then.begin(), then.end());
	return first;
}

struct Run : BackgroundLoad {
	Run(const Arguments &where, const Arguments &more) : BackgroundLoad(joined(where, more)) {}
	void end()
	{
		BackgroundLoad::end();
		CHECK(json["exit_status"] == status);
		// Log and figures have the same counts of every class.
		const std::vector<std::pair<unsigned, const char *>> classes = {
		    {FT_STATUS_ERROR_REPLY, "error reply"},
		    {FT_STATUS_TIMEOUT, "no answer"},
		    {FT_STATUS_RESET, "connection lost"},
		    {FT_STATUS_WRONG, "wrong reply"},
		    {FT_STATUS_UNSENT, "never sent"}};
		uint64_t errors = 0;
		for (const auto &[number, name] : classes) {
			INFO(name);
			const size_t logged = log.with_status(number);
			errors += logged;
			CHECK(total["errors_by_kind"].value(name, uint64_t(0)) == logged);
		}
		CHECK(total["errors"] == errors);
	}
	// The first and last time of a class are between two instants.
	void times_within(const char *name, uint64_t from, uint64_t to)
	{
		INFO(name);
		REQUIRE(figures["error_times"].contains(name));
		const Json &t = figures["error_times"][name];
		CHECK(t["count"].get<uint64_t>() > 0);
		CHECK(t["first_ns"].get<uint64_t>() >= from);
		CHECK(t["last_ns"].get<uint64_t>() >= t["first_ns"].get<uint64_t>());
		CHECK(t["last_ns"].get<uint64_t>() <= to);
	}
};

Arguments at(const std::string &socket)
{
	return {"-s", socket};
}

// Answers of a Redis, except to the load, which gets `load`.
std::function<void(Peer &)> redis_that(std::function<std::string(const std::string &)> load)
{
	return after_greeting(
	    [load](Peer &peer, const std::string &request) { return peer.say(load(request)); });
}

} // namespace

TEST_CASE("on-error reconnect: the load continues when the server is back, and no request is missing")
{
	for (const bool open_loop : {false, true}) {
		INFO(open_loop);
		MortalRedis redis;
		Arguments more = {"--on-error", "reconnect", "--backoff",  "10ms",
				  "-c",		"8",	     "--duration", "4"};
		if (open_loop)
			more.insert(more.end(), {"--rate", "2000"});
		else
			more.insert(more.end(), {"--think", "2ms"});
		Run run(at(redis.socket()), more);
		run.under_way();
		const uint64_t before = now_ns();
		redis.kill();
		sleep_for(Seconds(0.5));
		redis.start();
		sleep_for(Seconds(0.3)); // the longest pause by then
		const uint64_t after = now_ns();
		run.end();
		INFO(run.err());
		CHECK(run.status == 0);
		CHECK(run.json["reason"] == "done");
		CHECK(run.log.with_status(FT_STATUS_RESET) <= 8);
		run.times_within("connection lost", before, after);
		run.times_within("refused", before, after + 2000000000);
		CHECK(run.figures["connects_failed"].get<uint64_t>() > 0);
		CHECK(run.figures["connections_broken"] == 8);
		CHECK(contains(run.out(), "connects refused"));
		if (open_loop) {
			CHECK(run.log.requests.size() == 8000);
			CHECK(run.log.with_status(FT_STATUS_OK) + run.log.with_status(FT_STATUS_MISS) +
				  run.log.with_status(FT_STATUS_RESET) ==
			      8000);
		}
		// On every connection, answers arrived again after the outage.
		std::map<uint32_t, int> again;
		for (const ft_request &q : run.log.requests)
			again[q.connection] += q.start_ns > after && q.status <= FT_STATUS_MISS;
		for (const auto &[id, n] : again)
			CHECK((n > 0 || id == UINT32_MAX));
	}
}

TEST_CASE("on-error reconnect with blocking calls, and answers read later")
{
	for (const char *mode : {"--blocking", "--no-wait"}) {
		INFO(mode);
		MortalRedis redis;
		Run run(at(redis.socket()), {"--on-error", "reconnect", "--backoff", "10ms", "-c", "3",
					     "--duration", "3", mode, "-P", "5", "--think", "1ms"});
		run.under_way();
		redis.kill();
		sleep_for(Seconds(0.3));
		redis.start();
		run.end();
		INFO(run.err());
		CHECK(run.status == 0);
		CHECK(run.log.with_status(FT_STATUS_RESET) > 0);
		uint64_t lost_last = 0, answered_last = 0;
		for (const ft_request &q : run.log.requests)
			(q.status == FT_STATUS_RESET ? lost_last : answered_last) =
			    std::max(q.status == FT_STATUS_RESET ? lost_last : answered_last, q.end_ns);
		CHECK(answered_last > lost_last);
	}
}

TEST_CASE("on-error reconnect: a server that stays away is reported as lost")
{
	MortalRedis redis;
	Run run(at(redis.socket()), {"--on-error", "reconnect", "--backoff", "20ms", "-c", "4", "--duration",
				     "2500ms", "--think", "5ms"});
	run.under_way();
	redis.kill();
	run.end();
	INFO(run.err());
	CHECK(run.status == 3);
	CHECK(contains(run.err(), "all 4 connections were lost"));
	CHECK(lines(run.err()) == 1);
	CHECK(run.json["reason"] == "server lost");
}

TEST_CASE("on-error continue uses the remaining connections, stop ends at the first error")
{
	MortalRedis redis;
	Run on(at(redis.socket()), {"-c", "4", "--duration", "30", "--think", "1ms"});
	on.under_way();
	redis.kill();
	on.end();
	CHECK(on.status == 3);
	CHECK(on.json["reason"] == "server lost");
	CHECK(on.log.with_status(FT_STATUS_RESET) <= 4);
	redis.start();

	Run stop(at(redis.socket()), {"-c", "4", "--duration", "30", "--think", "1ms", "--on-error", "stop"});
	stop.under_way();
	redis.kill();
	stop.end();
	INFO(stop.err());
	CHECK(stop.status == 3);
	CHECK(contains(stop.err(), "--on-error stop"));
	CHECK(stop.json["reason"] == "errors");
	redis.start();

	// So is losing an idle connection.
	Run idle(at(redis.socket()),
		 {"-c", "20", "--duration", "30", "--think", "20s", "--on-error", "stop"});
	idle.under_way();
	redis.kill();
	idle.end();
	INFO(idle.err());
	CHECK(idle.status == 3);
	CHECK(idle.json["reason"] == "errors");
	redis.start();

	// An error reply is an error too.
	Redis other;
	other.command({"LPUSH", "key:000000000000", "x"});
	Run first(at(other.socket()), {"-t", "get", "-c", "1", "-n", "1000", "--on-error", "stop"});
	first.end();
	CHECK(first.status == 3);
	CHECK(first.log.requests.size() == 1);
	CHECK(first.log.with_status(FT_STATUS_ERROR_REPLY) == 1);
}

TEST_CASE("max-errors ends the run at that error")
{
	Redis redis;
	redis.command({"LPUSH", "key:000000000000", "x"});
	Run run(at(redis.socket()), {"-t", "get", "-c", "1", "-n", "1000", "--max-errors", "25"});
	run.end();
	INFO(run.err());
	CHECK(run.status == 3);
	CHECK(run.log.with_status(FT_STATUS_ERROR_REPLY) == 25);
	CHECK(run.log.requests.size() == 25);
	CHECK(contains(run.err(), "--max-errors"));
	CHECK(lines(run.err()) == 1);
	CHECK(run.json["reason"] == "errors");

	Run fewer(at(redis.socket()), {"-t", "get", "-c", "1", "-n", "20", "--max-errors", "25"});
	fewer.end();
	CHECK(fewer.status == 3); // because all of them failed
	CHECK(contains(fewer.err(), "every request failed: WRONGTYPE"));
	CHECK(fewer.json["reason"] == "done");
}

TEST_CASE("timeout: requests to a hung server time out, and it is found again")
{
	for (const bool open_loop : {false, true}) {
		INFO(open_loop);
		Redis redis;
		Arguments more = {"--on-error", "reconnect", "--backoff", "10ms",	"-c",
				  "5",		"--timeout", "200ms",	  "--duration", "3"};
		if (open_loop)
			more.insert(more.end(), {"--rate", "500"});
		else
			more.insert(more.end(), {"--think", "5ms"});
		Run run(at(redis.socket()), more);
		run.under_way();
		redis.process().signal(SIGSTOP);
		sleep_for(Seconds(0.8));
		redis.process().signal(SIGCONT);
		run.end();
		INFO(run.err());
		CHECK(run.status == 0);
		CHECK(run.log.with_status(FT_STATUS_TIMEOUT) >= 5);
		for (const ft_request &q : run.log.requests)
			if (q.status == FT_STATUS_TIMEOUT)
				CHECK(q.end_ns - q.start_ns >= 200000000);
		if (open_loop)
			CHECK(run.log.requests.size() == 1500);
		CHECK(run.log.requests.back().status <= FT_STATUS_MISS);
	}
}

TEST_CASE("timeout with blocking calls, and with requests that the server does not read")
{
	for (const Arguments &mode :
	     std::vector<Arguments>{{"--blocking"},
				    {"--no-wait", "-P", "10"},
				    {"--blocking", "-d", "3000000", "-t", "set"},
				    {"--no-wait", "-d", "3000000", "-t", "set", "-P", "3"},
				    {"-d", "3000000", "-t", "set"}}) {
		INFO(mode.front() << mode.size());
		Redis redis;
		Arguments more = {"-c", "2", "--timeout", "300ms", "--think", "10ms", "-l"};
		more.insert(more.end(), mode.begin(), mode.end());
		Run run(at(redis.socket()), more);
		run.under_way();
		redis.process().signal(SIGSTOP);
		run.end();
		INFO(run.err());
		CHECK(run.status == 3);
		CHECK(contains(run.err(), "all 2 connections were lost: no answer within --timeout"));
		CHECK(run.log.with_status(FT_STATUS_TIMEOUT) >= 2);
	}
}

TEST_CASE("Ctrl-C ends blocking calls on a hung server")
{
	for (const Arguments &mode : std::vector<Arguments>{
		 {"--blocking"}, {"--no-wait", "-P", "10"}, {"--blocking", "-d", "3000000", "-t", "set"}}) {
		INFO(mode.front() << mode.size());
		Redis redis;
		Arguments more = {"-c", "2", "-l", "--think", "5ms"};
		more.insert(more.end(), mode.begin(), mode.end());
		Run run(at(redis.socket()), more);
		run.under_way();
		redis.process().signal(SIGSTOP);
		sleep_for(Seconds(0.3));
		run.process->signal(SIGINT);
		run.end();
		CHECK(run.json["reason"] == "interrupted");
		CHECK(run.log.with_status(FT_STATUS_TIMEOUT) >= 2);
	}
}

TEST_CASE("error replies are counted by their first word: OOM, READONLY, NOAUTH, of memcached too")
{
	Redis full({.tcp = false, .config = {"--maxmemory", "1", "--maxmemory-policy", "noeviction"}});
	Run oom(at(full.socket()), {"-t", "set", "-n", "100", "-c", "3"});
	oom.end();
	CHECK(oom.status == 3);
	CHECK(contains(oom.err(), "every request failed: OOM command not allowed when used memory"));
	CHECK(contains(oom.out(), "first: OOM command not allowed when used memory"));
	CHECK(contains(oom.figures["error_texts"]["OOM"].get<std::string>(), "OOM command not allowed"));
	CHECK(oom.figures["error_replies"] == Json({{"OOM", 100}}));
	CHECK(oom.log.with_status(FT_STATUS_ERROR_REPLY) == 100);
	CHECK(contains(oom.out(), "-OOM"));
	CHECK(oom.figures["error_times"]["OOM"]["count"] == 100);

	Redis master, replica;
	replica.command({"REPLICAOF", "127.0.0.1", "1"});
	Run readonly(at(replica.socket()), {"-t", "set", "-n", "50", "-c", "3"});
	readonly.end();
	CHECK(readonly.status == 3);
	CHECK(readonly.figures["error_replies"] == Json({{"READONLY", 50}}));

	Memcached memcached({.tcp = false, .config = {"-m", "64"}});
	for (const char *protocol : {"memcache_text", "memcache_binary"}) {
		Run large(at(memcached.socket()),
			  {"--protocol", protocol, "-t", "set", "-n", "10", "-c", "1", "-d", "2000000"});
		large.end();
		INFO(protocol << large.err());
		CHECK(large.log.with_status(FT_STATUS_ERROR_REPLY) == 10);
		CHECK(large.figures["error_replies"].size() == 1);
	}
}

TEST_CASE("a test of which all requests fail is reported, and the tests after it run")
{
	Redis redis;
	redis.command({"LPUSH", "key:000000000000", "x"});
	TempDir dir;
	const Result r = load({"-s", redis.socket(), "-t", "get,incr", "-n", "20", "-c", "2", "-q", "--json",
			       dir.file("json")});
	CHECK(r.status == 0);
	CHECK(lines(r.err) == 1);
	CHECK(contains(r.err, "GET: every request failed: WRONGTYPE Operation against a key"));
	const Json runs = parse_json(read_file(dir.file("json")))["runs"];
	REQUIRE(runs.size() == 2);
	CHECK(runs[0]["total"]["errors"] == 20);
	CHECK(runs[1]["total"]["errors"] == 0);
}

TEST_CASE("many MOVED, and LOADING in mid-run, are errors and do not end the run")
{
	std::atomic<int> sent = 0;
	FakeServer server(redis_that([&](const std::string &) -> std::string {
		const int n = sent++;
		return n < 100	 ? "$3\r\nabc\r\n"
		       : n < 150 ? "-LOADING Redis is loading the dataset in memory\r\n"
		       : n < 180 ? "-MOVED 3999 127.0.0.1:6381\r\n"
				 : "$3\r\nabc\r\n";
	}));
	Run run(server.where(), {"-t", "get", "-n", "300", "-c", "4"});
	run.end();
	INFO(run.err());
	CHECK(run.status == 3); // a node of a cluster
	CHECK(contains(run.err(), "30 of 300 requests were answered with MOVED (first: MOVED 3999 "
				  "127.0.0.1:6381), because the server is a node of a cluster. Use "
				  "--cluster"));
	CHECK(run.figures["error_replies"] == Json({{"LOADING", 50}, {"MOVED", 30}}));
	CHECK(run.log.with_status(FT_STATUS_OK) == 220);
	CHECK(run.log.requests.size() == 300);
	CHECK(run.figures["error_times"]["LOADING"]["first_ns"] <=
	      run.figures["error_times"]["MOVED"]["first_ns"]);
	// Seventeen different words: the sixteenth place takes the rest.
	std::atomic<int> kind = 0;
	FakeServer inventive(
	    redis_that([&](const std::string &) { return "-W" + std::to_string(kind++ % 20) + " x\r\n"; }));
	Run many(inventive.where(), {"-t", "get", "-n", "200", "-c", "1"});
	many.end();
	CHECK(many.figures["error_replies"].size() == 16);
	CHECK(many.figures["error_replies"]["other"] == 50);
	CHECK(many.figures["error_replies"]["W0"] == 10);
}

TEST_CASE("errors of the warm-up are in the log and in no figure")
{
	Redis redis;
	redis.command({"LPUSH", "key:000000000000", "x"});
	TempDir dir;
	const Result r =
	    load({"-s", redis.socket(), "-t", "get", "--rate", "200", "--warmup", "500ms", "--duration",
		  "500ms", "-q", "-o", dir.file("log"), "--json", dir.file("json")});
	CHECK(r.status == 3); // every request failed
	CHECK(read_log(dir.file("log")).with_status(FT_STATUS_ERROR_REPLY) == 200);
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	CHECK(figures["total"]["errors"] == 100);
	CHECK(figures["error_replies"]["WRONGTYPE"] == 100);
	CHECK(figures["error_times"]["error reply"]["count"] == 100);
}

TEST_CASE("the pause before connecting again doubles")
{
	FakeServer server([](Peer &peer) {
		if (peer.number < 3)
			after_greeting([](Peer &, const std::string &) { return false; })(peer);
	});
	Run run(server.where(), {"-t", "get", "-n", "100", "-c", "1", "--on-error", "reconnect", "--backoff",
				 "100ms", "--max-errors", "6"});
	run.end();
	const auto at = server.accepted();
	REQUIRE(at.size() >= 7); // the search for an address, the probe, the connection, and the reconnection
	for (size_t i = 2; i + 1 < at.size(); i++) {
		INFO(i);
		// Never sooner. On a busy machine it may be later.
		CHECK(Seconds(at[i + 1] - at[i]).count() > 0.099 * (1 << (i - 2)));
	}
}

TEST_CASE("a server that refuses the login of a reopened connection")
{
	Redis redis({.tcp = false, .config = {"--requirepass", "old"}});
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "-c", "2", "-l", "-q", "--on-error", "reconnect",
				"--backoff", "1ms", "--max-errors", "20", "--think", "5ms", "-o",
				dir.file("log"), "--no-observer"}),
		  with_environment({{"FORKTAIL_PASSWORD", "old"}}));
	REQUIRE(eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(20)));
	redis.command({"AUTH", "old"});
	redis.command({"CONFIG", "SET", "requirepass", "new"});
	redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
	REQUIRE(p.wait(Seconds(20)).has_value());
	INFO(p.err());
	CHECK(p.wait(Seconds(0)) == 3);
	CHECK(contains(p.err(), "--max-errors"));
	CHECK(read_log(dir.file("log")).whole());
}
