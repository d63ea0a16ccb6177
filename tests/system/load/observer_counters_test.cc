// SPDX-License-Identifier: MIT
// What the observer notes of the counters of a real server: of its commands at the begin and at the end, of
// its I/O threads every second.
#include <csignal>
#include <hiredis/hiredis.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/system/load/observation.h"

using namespace forktail::test;

namespace
{

size_t count_of(const std::string &text, const std::string &part)
{
	size_t count = 0;
	for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
		count++;
	return count;
}

// The command's entry in a note of counters; null without.
Json counters_of(const Json &note, const std::string &command)
{
	for (const Json &c : note["commands"])
		if (c["name"] == command)
			return c;
	return nullptr;
}

// "17" of "calls=3,usec=17,..."
std::string part_of(const std::string &parts, const std::string &name)
{
	const size_t from = parts.find(name + "=") + name.size() + 1;
	return parts.substr(from, parts.find(',', from) - from);
}

} // namespace

TEST_CASE("the counters of each command are noted at the begin and at the end")
{
	for (const std::string kind : {"redis", "redis-server", "valkey-server"}) {
		const std::string program = kind == "redis" ? "redis-server" : newer_server(kind);
		if (program.empty()) {
			WARN("SKIPPED: no " << kind << " of a later Debian (script/servers)");
			continue;
		}
		Redis redis({.tcp = false, .program = program});
		INFO(kind << " " << redis.info("redis_version"));
		for (int i = 0; i < 40; i++)
			redis.command({"SET", "key", "before"});
		Observation o(redis.socket());
		REQUIRE(eventually([&] { return o.count("command-latency") == 1; }));
		REQUIRE(o.another_round(kRound, 2));
		for (int i = 0; i < 300; i++)
			redis.command({"SET", "key", "value"});
		for (int i = 0; i < 70; i++)
			redis.command({"LPUSH", "key", "of another type"});
		redis.command({"GET"}); // rejected
		o.end();
		for (const char *noted : {"command-stats", "command-latency"}) {
			const std::vector<Json> notes = o.notes(noted);
			REQUIRE(notes.size() == 2);
			CHECK(notes[0]["t_ns"].get<uint64_t>() < notes[1]["t_ns"].get<uint64_t>());
			for (const Json &note : notes)
				CHECK(note["run_id"] == redis.info("run_id"));
			const Json before = counters_of(notes[0], "set"),
				   after = counters_of(notes[1], "set");
			CHECK(before["calls"] == 40);
			CHECK(after["calls"] == 340);
			CHECK(counters_of(notes[0], "lpush").is_null());
		}
		const Json stats = o.notes("command-stats").at(1);
		CHECK(std::to_string(counters_of(stats, "set")["usec"].get<uint64_t>()) ==
		      part_of(redis.info("cmdstat_set"), "usec"));
		CHECK(counters_of(stats, "lpush")["failed_calls"] == 70);
		CHECK(counters_of(stats, "get")["rejected_calls"] == 1);
		const Json slots = counters_of(o.notes("command-latency").at(1), "set")["slots"];
		REQUIRE(!slots.empty());
		CHECK(slots.back()[1] == 340);
		for (size_t i = 1; i < slots.size(); i++) {
			CHECK(slots[i][0].get<uint64_t>() > slots[i - 1][0].get<uint64_t>());
			CHECK(slots[i][1].get<uint64_t>() > slots[i - 1][1].get<uint64_t>());
		}
	}
}

TEST_CASE("INFO has the connections of each I/O thread that CLIENT LIST has")
{
	const std::string program = newer_server("redis-server");
	if (program.empty()) {
		WARN("SKIPPED: no Redis 8 (script/servers)");
		return;
	}
	Redis redis({.tcp = false, .config = {"--io-threads", "3"}, .program = program});
	Observation o(redis.socket());
	std::vector<std::unique_ptr<redisContext, void (*)(redisContext *)>> clients;
	for (int i = 0; i < 9; i++)
		clients.emplace_back(redisConnectUnix(redis.socket().c_str()), redisFree);
	CHECK(eventually([&] {
		const std::string list = redis.command({"CLIENT", "LIST"});
		double all = 0;
		for (const std::string thread : {"1", "2"}) {
			const std::vector<double> known = o.values("redis.io_thread_" + thread + ".clients");
			if (known.empty() || known.back() != count_of(list, " io-thread=" + thread + "\n"))
				return false;
			all += known.back();
		}
		return all >= 9;
	}));
}

TEST_CASE("the manifest has the commands that the server counts, not the names of tests")
{
	Redis redis;
	TempDir dir;
	REQUIRE(load({"-s", redis.socket(), "-t", "lrange_100,set", "-n", "10", "-q", "-o", dir.file("log")})
		    .status == 0);
	const Json manifest = read_log(dir.file("log")).manifest;
	for (size_t i = 0; i < manifest["ops"].size(); i++)
		CHECK(manifest["commands"][i] ==
		      (manifest["ops"][i] == "LRANGE_100" ? Json("LRANGE") : Json("SET")));
	CHECK(manifest["commands"].size() == manifest["ops"].size());
	CHECK(manifest["ops"].size() >= 2);
}

TEST_CASE("a stop in the middle of a question does not lose the last counters")
{
	Redis redis;
	Observation o(redis.socket());
	REQUIRE(eventually([&] { return o.count("command-latency") == 1; }));
	redis.command({"SET", "key", "value"});
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(1.2)); // it sends a command and gets no answer
	std::thread later([&] {
		sleep_for(Seconds(0.3));
		redis.process().signal(SIGCONT);
	});
	o.end();
	later.join();
	const std::vector<Json> notes = o.notes("command-stats");
	REQUIRE(notes.size() == 2);
	CHECK(counters_of(notes[1], "set")["calls"] == 1);
	CHECK(o.count("command-latency") == 2);
}

TEST_CASE("the counters of another process are noted from its begin on")
{
	TempDir dir;
	const RedisOptions options = {.directory = dir.path()};
	auto redis = std::make_unique<Redis>(options);
	Observation o(redis->socket());
	REQUIRE(eventually([&] { return o.count("command-stats") == 1; }));
	redis->signal(SIGKILL);
	REQUIRE(redis->wait(Seconds(10)));
	redis = std::make_unique<Redis>(options);
	REQUIRE(eventually([&] { return o.count("command-stats") == 2; }, Seconds(30)));
	REQUIRE(o.another_round(kRound, 2));
	o.end();
	const std::vector<Json> notes = o.notes("command-stats");
	REQUIRE(notes.size() == 3);
	CHECK(notes[0]["run_id"] != notes[1]["run_id"]);
	CHECK(notes[1]["run_id"] == notes[2]["run_id"]);
}
