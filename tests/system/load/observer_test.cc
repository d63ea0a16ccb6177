// SPDX-License-Identifier: MIT
// The observer of a load on real servers: what it writes into a recording, and that no failure of a server
// (refusing, hanging, dying) prevents it from ending or makes it report something twice.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/server.h"
#include "tests/support/text.h"
#include "tests/system/load/observation.h"

using namespace forktail::test;

namespace
{

uint64_t id_of(const Json &slowlog)
{
	return slowlog["id"].get<uint64_t>();
}

std::vector<std::string> command_of(const Json &slowlog)
{
	return slowlog["command"].get<std::vector<std::string>>();
}

} // namespace

TEST_CASE("every number of INFO becomes a series")
{
	Redis redis;
	redis.command({"SET", "key", "value"});
	Observation o(redis.socket());
	REQUIRE(o.another_round(kRound, 3));
	CHECK(contains(redis.command({"CLIENT", "LIST"}), "name=forktail-observer"));
	const Recorded r = o.end();
	CHECK(r.error.empty());
	CHECK_FALSE(r.damage.no_trailer);
	std::set<std::string> names;
	for (const auto &[id, text] : r.series) {
		const Json j = parse_json(text);
		CHECK(id >= 1);
		CHECK(j["unit"] == "");
		CHECK(j["labels"] == Json::object());
		CHECK(names.insert(j["name"]).second);
		CHECK(j["name"].get<std::string>().rfind("redis.", 0) == 0);
	}
	for (const char *name : {"redis.used_memory", "redis.connected_clients", "redis.used_cpu_sys",
				 "redis.mem_fragmentation_ratio", "redis.rdb_last_bgsave_time_sec",
				 "redis.db0.keys", "redis.total_forks"})
		CHECK(names.count(name) == 1);
	for (const char *name : {"redis.redis_version", "redis.role", "redis.used_memory_human", "redis.db0"})
		CHECK(names.count(name) == 0);
	CHECK(names.size() > 80);
	uint64_t last_ns = 0;
	for (const ft_sample &s : r.samples) {
		CHECK(r.series.count(s.series) == 1);
		CHECK(s.t_ns >= last_ns);
		last_ns = s.t_ns;
	}
	CHECK(o.count("observer-connected") == 1);
	const Json connected = parse_json(r.notes.at(0));
	CHECK(connected["kind"] == "observer-connected");
	CHECK(connected["server"] == "redis");
	CHECK(connected["role"] == "master");
	CHECK(connected["version"].get<std::string>() == redis.info("redis_version"));
	CHECK(connected["run_id"].get<std::string>() == redis.info("run_id"));
}

TEST_CASE("the server's counters are in the samples")
{
	Redis redis;
	Observation o(redis.socket());
	REQUIRE(o.another_round(kRound));
	for (int i = 0; i < 321; i++)
		redis.command({"SET", "key" + std::to_string(i), "x"});
	CHECK(eventually([&] {
		const auto keys = o.values("redis.db0.keys");
		return !keys.empty() && keys.back() == 321;
	}));
	CHECK(o.values("redis.tcp_port").size() == 1); // an unchanged value is written once
}

TEST_CASE("slow log entries are noted once, from the observer's start on, with their time")
{
	Redis redis({.tcp = false, .config = {"--slowlog-log-slower-than", "0"}});
	redis.command({"SET", "before", "it"});
	Observation o(redis.socket());
	REQUIRE(o.another_round(kRound, 2));
	const std::string binary("\x01\x00z\xff", 4);
	const uint64_t before_ns = ft_now_ns();
	redis.command({"SET", "marked", binary});
	redis.command({"SET", "long", std::string(1000, 'v')});
	const uint64_t after_ns = ft_now_ns();
	REQUIRE(eventually([&] {
		for (const Json &note : o.notes("slowlog"))
			if (command_of(note).size() > 1 && command_of(note)[1] == "long")
				return true;
		return false;
	}));
	REQUIRE(o.another_round(kRound, 2));
	std::set<uint64_t> ids;
	int marked = 0, of_length = 0, own = 0;
	for (const Json &note : o.notes("slowlog")) {
		CHECK(ids.insert(id_of(note)).second);
		CHECK(note["unix_s"].get<uint64_t>() > 1700000000);
		CHECK(note["duration_us"].is_number_unsigned());
		const auto command = command_of(note);
		own += note["client_name"] == "forktail-observer";
		CHECK(command.at(0) != "before");
		if (command.size() < 2)
			continue;
		CHECK(command[1] != "before");
		if (command[1] == "long") {
			of_length++;
			CHECK(command[2] == std::string(128, 'v'));
		}
		if (command[1] != "marked")
			continue;
		marked++;
		CHECK(command[0] == "SET");
		CHECK(command[2] == "\\x01\\x00z\\xff");
		CHECK(contains(note["client"].get<std::string>(), redis.socket()));
		const uint64_t t_ns = note["t_ns"], error_ns = note["t_error_ns"];
		CHECK(t_ns - error_ns <= after_ns);
		CHECK(t_ns + error_ns >= before_ns);
	}
	CHECK(marked == 1);
	CHECK(of_length == 1);
	CHECK(own > 0); // its own commands are visible, with their own name
	CHECK(*ids.rbegin() - *ids.begin() + 1 == ids.size());
	CHECK(o.count("slowlog-missed") == 0);
}

TEST_CASE("Valkey's logs of large requests and replies are noted too, and Redis is not asked for them")
{
	{
		Redis redis;
		Observation o(redis.socket());
		REQUIRE(o.another_round(kRound, 3));
		CHECK(o.count("observer-refused") == 0);
		CHECK_FALSE(contains(redis.command({"INFO", "errorstats"}), "errorstat_ERR"));
	}
	const std::string program = newer_server("valkey-server");
	if (program.empty()) {
		WARN("SKIPPED: no valkey-server (script/servers)");
		return;
	}
	Redis valkey({.tcp = false, .program = program});
	valkey.command({"SET", "before", std::string(2 << 20, 'b')});
	Observation o(valkey.socket());
	REQUIRE(o.another_round(kRound, 2));
	valkey.command({"SET", "large", std::string(3 << 20, 'v')});
	valkey.command({"GET", "large"});
	REQUIRE(eventually([&] { return o.count("large-request") == 1 && o.count("large-reply") == 1; }));
	REQUIRE(o.another_round(kRound, 2));
	REQUIRE((o.count("large-request") == 1 && o.count("large-reply") == 1)); // each once
	for (const char *kind : {"large-request", "large-reply"}) {
		const Json note = o.notes(kind).at(0);
		CHECK(note["bytes"].get<uint64_t>() > 3 << 20);
		CHECK(note["bytes"].get<uint64_t>() < (3 << 20) + 1000);
		CHECK(command_of(note).at(1) == "large");
		CHECK(note["t_error_ns"].get<uint64_t>() < 1'100'000'000);
	}
	CHECK(o.count("slowlog-missed") + o.count("large-request-missed") + o.count("large-reply-missed") ==
	      0);
}

TEST_CASE("entries that came faster than they could be fetched are counted")
{
	Redis redis({.tcp = false, .config = {"--slowlog-log-slower-than", "0"}});
	Observation o(redis.socket());
	REQUIRE(o.another_round(kRound, 2));
	for (int i = 0; i < 1000; i++)
		redis.command({"GET", "key"});
	redis.command({"GET", "last"});
	REQUIRE(eventually([&] {
		for (const Json &note : o.notes("slowlog"))
			if (command_of(note).back() == "last")
				return true;
		return false;
	}));
	std::set<uint64_t> ids;
	for (const Json &note : o.notes("slowlog"))
		CHECK(ids.insert(id_of(note)).second);
	uint64_t missed = 0;
	for (const Json &note : o.notes("slowlog-missed"))
		missed += note["count"].get<uint64_t>();
	CHECK(missed > 0);
	CHECK(*ids.rbegin() - *ids.begin() + 1 == ids.size() + missed);
}

TEST_CASE("a stall is in the latency monitor, the slow log and the observer's own wait")
{
	// Thresholds that no command reaches by a delay on a busy machine.
	Redis redis({.tcp = false,
		     .config = {"--enable-debug-command", "yes", "--latency-monitor-threshold", "1000",
				"--slowlog-log-slower-than", "1000000"}});
	redis.command({"DEBUG", "SLEEP", "1.1"}); // an old event
	Observation o(redis.socket());
	REQUIRE(o.another_round(kRound));
	const uint64_t before_ns = ft_now_ns();
	redis.command({"DEBUG", "SLEEP", "1.5"});
	const uint64_t after_ns = ft_now_ns();
	REQUIRE(eventually([&] { return o.count("latency-event") >= 1 && o.count("slowlog") >= 1; }));
	const Json event = o.notes("latency-event").at(0);
	CHECK(event["event"] == "command");
	CHECK(event["latest_ms"].get<int>() >= 1500);
	CHECK(event["max_ms"].get<int>() >= 1500);
	const Json slow = o.notes("slowlog").at(0);
	CHECK(command_of(slow) == std::vector<std::string>{"DEBUG", "SLEEP", "1.5"});
	CHECK(slow["duration_us"].get<int>() >= 1500000);
	CHECK(slow["t_ns"].get<uint64_t>() + slow["t_error_ns"].get<uint64_t>() >= before_ns);
	CHECK(slow["t_ns"].get<uint64_t>() - slow["t_error_ns"].get<uint64_t>() <= after_ns);
	// One question per second: one of them had to wait.
	REQUIRE(eventually([&] { return o.count("observer-slow") >= 1; }));
	const Json waited = o.notes("observer-slow").at(0);
	CHECK(waited["duration_ns"].get<uint64_t>() > 100000000);
	CHECK(waited["t_ns"].get<uint64_t>() < after_ns);
	REQUIRE(o.another_round(kRound, 2));
	CHECK(o.count("latency-event") == 1); // reported once, though it stays the latest
	CHECK(o.count("slowlog") == 1);
}

TEST_CASE("forks, snapshots and a changed role are noted")
{
	Redis redis({.tcp = false, .config = {"--rdb-key-save-delay", "100000"}});
	for (int i = 0; i < 30; i++)
		redis.command({"SET", "key" + std::to_string(i), "x"});
	Observation o(redis.socket());
	REQUIRE(o.another_round(kRound));
	const uint64_t before_ns = ft_now_ns();
	redis.command({"BGSAVE"}); // takes three seconds
	REQUIRE(eventually([&] { return o.count("redis-state") >= 2; }, Seconds(30)));
	const auto forks = o.notes("fork");
	REQUIRE(forks.size() == 1);
	CHECK(std::to_string(forks[0]["latest_fork_usec"].get<uint64_t>()) == redis.info("latest_fork_usec"));
	CHECK(forks[0]["forks"] == 1);
	CHECK(forks[0]["t_ns"].get<uint64_t>() > before_ns);
	auto states = o.notes("redis-state");
	CHECK(states[0]["field"] == "rdb_bgsave_in_progress");
	CHECK(states[0]["from"] == "0");
	CHECK(states[0]["to"] == "1");
	CHECK(states[1]["field"] == "rdb_bgsave_in_progress");
	CHECK(states[1]["to"] == "0");
	redis.command({"REPLICAOF", "127.0.0.1", "1"});
	REQUIRE(eventually([&] { return o.count("redis-state") >= 3; }));
	states = o.notes("redis-state");
	CHECK(states[2]["field"] == "role");
	CHECK(states[2]["from"] == "master");
	CHECK(states[2]["to"] == "slave");
}

TEST_CASE("a refusal of the server is noted once, and the question is not repeated")
{
	Redis redis;
	redis.command({"ACL", "SETUSER", "watcher", "on", ">secret-word", "+info", "+auth"});
	observer_server server = Observation::on("");
	const std::string socket = redis.socket();
	server.socket = socket.c_str();
	server.user = "watcher";
	server.password = "secret-word";
	Observation o(server);
	REQUIRE(o.another_round(kRound, 4));
	const Recorded r = o.end();
	std::vector<std::string> refused;
	for (const std::string &text : r.notes)
		if (Json j = parse_json(text); j["kind"] == "observer-refused") {
			CHECK(contains(j["error"].get<std::string>(), "NOPERM"));
			refused.push_back(j["command"]);
		}
	CHECK(refused == std::vector<std::string>{"SLOWLOG GET", "LATENCY LATEST", "LATENCY HISTOGRAM"});
	CHECK_FALSE(contains(read_file(o.path()), "secret-word"));
}

TEST_CASE("a login that is refused or missing is noted once")
{
	Redis redis({.tcp = false, .config = {"--requirepass", "right"}});
	const std::string socket = redis.socket();
	observer_server server = Observation::on("");
	server.socket = socket.c_str();
	const char *asked = "PING";
	SECTION("wrong")
	{
		server.password = "wrong";
		asked = "AUTH";
	}
	SECTION("none") {}
	Observation o(server);
	REQUIRE(eventually([&] { return o.count("observer-refused") > 0; }));
	sleep_for(Seconds(1.5));
	const Recorded r = o.end();
	REQUIRE(r.notes.size() == 1);
	CHECK(parse_json(r.notes[0])["command"] == asked);
	CHECK(r.series.empty());
}

TEST_CASE("a server that dies and comes back is found again, and its log begins again")
{
	TempDir dir;
	const RedisOptions options = {.config = {"--slowlog-log-slower-than", "0"}, .directory = dir.path()};
	auto redis = std::make_unique<Redis>(options);
	Observation o(redis->socket());
	REQUIRE(o.another_round(kRound, 2));
	redis->signal(SIGKILL);
	REQUIRE(redis->wait(Seconds(10)));
	REQUIRE(eventually([&] { return o.count("observer-lost") >= 1; }));
	sleep_for(Seconds(1.5)); // several attempts
	CHECK(o.notes("observer-lost").back()["t_ns"].get<uint64_t>() < ft_now_ns());
	const size_t lost = o.count("observer-lost");
	redis = std::make_unique<Redis>(options);
	REQUIRE(eventually([&] { return o.count("observer-connected") == 2; }, Seconds(30)));
	REQUIRE(o.another_round(kRound, 2));
	CHECK(o.count("observer-lost") == lost);
	CHECK(lost <= 2); // the start itself may have happened before the first server's
	const auto connected = o.notes("observer-connected");
	CHECK(connected[0]["run_id"] != connected[1]["run_id"]);
	std::set<uint64_t> ids;
	int processes = 0;
	for (const std::string &text : o.so_far().notes) {
		const Json note = parse_json(text);
		if (note["kind"] == "observer-connected" && ++processes == 2)
			ids.clear();
		if (note["kind"] == "slowlog")
			CHECK(ids.insert(id_of(note)).second);
	}
	CHECK(ids.count(0) == 1); // everything that the new process has logged
	CHECK(o.count("slowlog-missed") == 0);
}

TEST_CASE("a server that hangs, has ended, or never existed does not delay a stop")
{
	// Well below the ten seconds that it waits for an answer.
	const Seconds soon(5);
	Redis redis;
	{
		Observation hangs(redis.socket());
		REQUIRE(hangs.another_round(kRound));
		redis.process().signal(SIGSTOP);
		sleep_for(Seconds(1.2)); // it sends a command and gets no answer
		CHECK(hangs.stop() < soon);
		redis.process().signal(SIGCONT);
	}
	Observation nobody("/nonexistent/redis.sock");
	REQUIRE(eventually([&] { return nobody.count("observer-lost") == 1; }));
	CHECK(nobody.notes("observer-lost")[0]["why"] == "No such file or directory");
	sleep_for(Seconds(1)); // in a pause between attempts
	CHECK(nobody.stop() < soon);
	CHECK(nobody.count("observer-lost") == 1);
}

TEST_CASE("memcached's numbers become series")
{
	Memcached memcached({.tcp = true});
	observer_server server = {};
	server.host = "localhost";
	server.port = static_cast<uint32_t>(memcached.port());
	server.memcached = true;
	Observation o(server);
	REQUIRE(o.another_round("memcached.uptime", 3));
	CHECK(o.values("memcached.pid") == std::vector<double>{static_cast<double>(memcached.pid())});
	CHECK(o.values("memcached.curr_connections").size() >= 1);
	CHECK(o.values("memcached.version").empty());
	const Json connected = o.notes("observer-connected").at(0);
	CHECK(connected["server"] == "memcached");
	CHECK(connected["process_id"] == std::to_string(memcached.pid()));
	memcached.signal(SIGKILL);
	REQUIRE(eventually([&] { return o.count("observer-lost") == 1; }));
	const Recorded r = o.end();
	CHECK(r.series.size() > 30);
	for (const auto &[id, text] : r.series)
		CHECK(parse_json(text)["name"].get<std::string>().rfind("memcached.", 0) == 0);
}

TEST_CASE("the other kind of server is noted as such")
{
	Redis redis({.tcp = true, .config = {}});
	observer_server server = {};
	server.host = "127.0.0.1";
	server.port = static_cast<uint32_t>(redis.port());
	server.memcached = true;
	Observation o(server);
	REQUIRE(eventually([&] { return o.count("observer-refused") == 1; }));
	CHECK(o.notes("observer-refused")[0]["command"] == "stats");
	CHECK(o.end().series.empty());
}

TEST_CASE("a host without an address and a path that is too long are errors at once")
{
	TempDir dir;
	ft_writer *writer = nullptr;
	REQUIRE(ft_writer_open(&writer, dir.file("recording").c_str(), "{}") == 0);
	observer *o = nullptr;
	observer_server server = {};
	server.host = "no-such-host.invalid";
	server.port = 6379;
	CHECK(observer_start(&o, &server, writer) == -EHOSTUNREACH);
	CHECK(o == nullptr);
	const std::string path(200, 'p');
	server.socket = path.c_str();
	CHECK(observer_start(&o, &server, writer) == -ENAMETOOLONG);
	CHECK(o == nullptr);
	observer_stop(nullptr);
	CHECK(ft_writer_close(writer, nullptr) == 0);
}
