// SPDX-License-Identifier: MIT
// RESP3 on a real Redis: every type it sends compared with the test's own reader, all tests under --resp3,
// pushed invalidations counted one by one, and users that may not name a connection or use RESP3.
#include <csignal>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>

#include "loadgen/protocol.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

// The test's own connection with RESP3.
class Speaker
{
public:
	explicit Speaker(const Redis &redis)
	{
		sockaddr_un address = {};
		address.sun_family = AF_UNIX;
		strncpy(address.sun_path, redis.socket().c_str(), sizeof(address.sun_path) - 1);
		fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		REQUIRE(connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0);
		const timeval limit = {20, 0};
		setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	}
	~Speaker() { close(fd_); }
	Speaker(const Speaker &) = delete;
	Speaker &operator=(const Speaker &) = delete;

	// The bytes of the next reply to a command.
	std::string ask(const std::string &command)
	{
		const std::string line = command + "\r\n";
		REQUIRE(send(fd_, line.data(), line.size(), MSG_NOSIGNAL) ==
			static_cast<ssize_t>(line.size()));
		return reply();
	}
	std::string reply()
	{
		size_t end = 0;
		while (!element(text_, end)) {
			char buffer[65536];
			const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
			REQUIRE(n > 0);
			text_.append(buffer, static_cast<size_t>(n));
			end = 0;
		}
		const std::string whole = text_.substr(0, end);
		text_.erase(0, end);
		return whole;
	}

	// Moves `at` behind the element there, by the protocol's definition. False: it is incomplete.
	static bool element(const std::string &t, size_t &at)
	{
		const size_t line = t.find("\r\n", at);
		if (line == std::string::npos)
			return false;
		const char type = t[at];
		const long long n = strtoll(t.c_str() + at + 1, nullptr, 10);
		at = line + 2;
		if (strchr("$=!", type) && n >= 0) {
			if (t.size() < at + static_cast<size_t>(n) + 2)
				return false;
			at += static_cast<size_t>(n) + 2;
		}
		long long elements = strchr("*~>", type) ? n : strchr("%|", type) ? 2 * n : 0;
		for (; elements > 0; elements--)
			if (!element(t, at))
				return false;
		return type != '|' || element(t, at);
	}

private:
	int fd_;
	std::string text_;
};

// The scanner's result for one reply, cut at `cut`: its end, kind and result.
struct Scanned {
	int result;
	size_t end;
	char kind;
	bool operator==(const Scanned &) const = default;
};

Scanned scanned(const std::string &text, size_t cut)
{
	resp_scanner s = {};
	const char *at = text.data();
	int result = resp_scan(&s, &at, text.data() + cut);
	if (result == 0)
		result = resp_scan(&s, &at, text.data() + text.size());
	return {result, static_cast<size_t>(at - text.data()), static_cast<char>(s.kind)};
}

uint64_t gets(Redis &redis)
{
	const std::string all = redis.command({"INFO", "commandstats"});
	const size_t at = all.find("cmdstat_get:calls=");
	return at == std::string::npos ? 0 : std::stoull(all.substr(at + 18));
}

// Reads at a steady rate until it is stopped.
struct Reader {
	TempDir dir;
	Process process;
	explicit Reader(const Redis &redis, const Arguments &more) : process(command(redis, more, dir)) {}
	static Arguments command(const Redis &redis, const Arguments &more, const TempDir &dir)
	{
		Arguments all = {"-s",		redis.socket(),
				 "--resp3",	"--command",
				 "GET __key__", "-r",
				 "100",		"--key-pattern",
				 "sequential",	"-c",
				 "1",		"--rate",
				 "1000",	"-l",
				 "-q",		"--no-observer",
				 "--json",	dir.file("json")};
		all.insert(all.end(), more.begin(), more.end());
		return load_command(all);
	}
	// Ends it, after all pushes so far have arrived before an answer that it has read.
	Json stop(Redis &redis)
	{
		const uint64_t seen = gets(redis);
		REQUIRE(eventually([&] { return gets(redis) >= seen + 3; }, Seconds(60)));
		process.signal(SIGINT);
		REQUIRE(process.wait(Seconds(60)).has_value());
		INFO(process.err());
		return parse_json(read_file(dir.file("json")))["runs"][0];
	}
};

std::string key_name(unsigned n)
{
	const std::string digits = std::to_string(n);
	return "key:" + std::string(12 - digits.size(), '0') + digits;
}

} // namespace

TEST_CASE("every type that Redis sends in RESP3 is scanned to its end, wherever it is cut")
{
	Redis redis({.config = {"--enable-debug-command", "yes"}});
	Speaker speaker(redis);
	redis.command({"HSET", "hash", "a", "1", "b", "2"});
	redis.command({"SADD", "set", "x", "y", "z"});
	redis.command({"ZADD", "zset", "1.5", "a", "inf", "b", "-3e20", "c"});
	redis.command({"XADD", "stream", "1-1", "field", "value"});
	redis.command({"RPUSH", "list", "1", "2", "3"});
	redis.command({"SET", "string", "value"});
	const std::vector<std::pair<std::string, char>> questions = {
	    {"HELLO 3", '*'},
	    {"HGETALL hash", '*'},
	    {"HGETALL none", '*'},
	    {"SMEMBERS set", '*'},
	    {"ZRANGE zset 0 -1 WITHSCORES", '*'},
	    {"ZSCORE zset a", ','},
	    {"ZSCORE zset b", ','},
	    {"ZSCORE zset none", 'n'},
	    {"ZPOPMIN zset", '*'},
	    {"GET string", '$'},
	    {"GET none", 'n'},
	    {"LPOP none", 'n'},
	    {"INCR number", ':'},
	    {"SET string value", '+'},
	    {"LRANGE list 0 -1", '*'},
	    {"XREAD STREAMS stream 0", '*'},
	    {"INFO server", '$'},
	    {"CONFIG GET *", '*'},
	    {"COMMAND INFO get set xadd", '*'},
	    {"CLIENT TRACKINGINFO", '*'},
	    {"MEMORY STATS", '*'},
	    {"NOSUCHCOMMAND", '-'},
	    {"INCR string", '-'},
	    {"DEBUG PROTOCOL string", '$'},
	    {"DEBUG PROTOCOL integer", ':'},
	    {"DEBUG PROTOCOL double", ','},
	    {"DEBUG PROTOCOL null", 'n'},
	    {"DEBUG PROTOCOL array", '*'},
	    {"DEBUG PROTOCOL set", '*'},
	    {"DEBUG PROTOCOL map", '*'},
	    {"DEBUG PROTOCOL attrib", '$'},
	    {"DEBUG PROTOCOL bignum", '('},
	    {"DEBUG PROTOCOL verbatim", '$'},
	    {"DEBUG PROTOCOL true", '#'},
	    {"DEBUG PROTOCOL false", '#'},
	    {"DEBUG PROTOCOL push", '>'},
	};
	for (const auto &[question, kind] : questions) {
		const std::string reply = speaker.ask(question);
		INFO(question << " -> " << reply.substr(0, 200));
		const Scanned expected = {kind == '>' ? 2 : 1, reply.size(), kind};
		bool all = true;
		const size_t step = reply.size() > 2000 ? 13 : 1; // CONFIG GET * has some 5 KB
		for (size_t cut = 0; cut <= reply.size(); cut += step)
			all = all && scanned(reply, cut) == expected;
		CHECK(all);
		if (kind == '>') // the push comes by itself, followed by an answer
			speaker.reply();
	}
}

TEST_CASE("all tests under RESP3: the same answers, none of them wrong")
{
	Redis redis;
	TempDir dir;
	const Result r = load({"-s", redis.socket(), "-3", "-t", "all", "-n", "500", "-r", "100", "-c", "5",
			       "-P", "4", "-q", "--json", dir.file("json"), "-o", dir.file("log")},
			      {}, Seconds(200));
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json json = parse_json(read_file(dir.file("json")));
	REQUIRE(json["runs"].size() > 15);
	for (const Json &run : json["runs"]) {
		INFO(run["name"]);
		CHECK(run["total"]["errors"] == 0);
		CHECK(run["total"]["requests"] == 500);
		CHECK(run["pushes"] == 0);
	}
	const Log log = read_log(dir.file("log"));
	CHECK(log.with_status(FT_STATUS_WRONG) == 0);
	CHECK(log.manifest["server_info"][0]["resp"] == 3);
	const Result ycsb =
	    load({"-s", redis.socket(), "-3", "--ycsb", "load", "-r", "200", "-c", "2", "-q"});
	CHECK(ycsb.status == 0);
	const Result scans = load({"-s", redis.socket(), "-3", "--ycsb", "E", "-r", "200", "-n", "200", "-c",
				   "2", "-q", "--fail-if", "errors>0"});
	INFO(scans.err);
	CHECK(scans.status == 0);
	redis.command({"FLUSHALL"});
	const Result verified =
	    load({"-s", redis.socket(), "-3", "--tracking", "--ratio", "1:1", "--verify", "-r", "20", "-d",
		  "1-3000", "-n", "5000", "-P", "4", "-q", "--fail-if", "errors>0"});
	INFO(verified.err);
	CHECK(verified.status == 0);
	CHECK(contains(verified.out, "pushes received"));
}

TEST_CASE("each invalidation is counted once: for the keys that were read, or for every change")
{
	for (const bool broadcast : {false, true}) {
		INFO(broadcast);
		Redis redis;
		Reader reader(redis, {broadcast ? "--tracking=bcast" : "--tracking"});
		if (broadcast) // the server does not track which client read which key
			REQUIRE(eventually([&] { return gets(redis) > 100; }, Seconds(60)));
		else
			REQUIRE(eventually([&] { return redis.info("tracking_total_keys") == "100"; },
					   Seconds(60)));
		CHECK(redis.info("tracking_clients") == "1");
		const std::string clients = redis.command({"CLIENT", "LIST"});
		CHECK(contains(clients, " name=forktail "));
		CHECK(contains(clients, " resp=3"));
		for (unsigned i = 0; i < 100; i++)
			CHECK(redis.command({"SET", key_name(i), "x"}) == "OK");
		redis.command({"SET", "another", "x"});
		const Json run = reader.stop(redis);
		CHECK(run["pushes"] == (broadcast ? 101 : 100));
		// Requests due and not sent when the load was stopped are not counted.
		CHECK(run["total"]["errors"] == run["total"]["errors_by_kind"].value("never sent", 0));
	}
}

TEST_CASE("reopened connections use RESP3, track and have their name, too")
{
	Redis redis({.config = {"--requirepass", "secret"}});
	redis.command({"AUTH", "secret"});
	const auto password = with_environment({{"FORKTAIL_PASSWORD", "secret"}});
	const Result r =
	    load({"-s", redis.socket(), "-3", "--tracking=bcast", "-n", "200", "-c", "2", "--reconnect", "10",
		  "-P", "3", "--ratio", "1:1", "-q", "--fail-if", "errors>0"},
		 password);
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(contains(r.out, "pushes received"));
	const std::string all = redis.command({"INFO", "commandstats"});
	const auto calls = [&](const std::string &name) {
		const size_t at = all.find("cmdstat_" + name + ":calls=");
		return at == std::string::npos ? 0 : std::stoul(all.substr(all.find('=', at) + 1));
	};
	CHECK(calls("hello") >= 20);
	CHECK(calls("client|tracking") == calls("hello"));
	CHECK(calls("client|setname") >= calls("hello"));

	// A user that may not name connections works without names.
	redis.command({"ACL", "SETUSER", "joe", "on", ">pw", "~*", "+get", "+set"});
	const Result joe = load({"-s", redis.socket(), "--user", "joe", "-n", "100", "-c", "2", "--reconnect",
				 "10", "-q", "--fail-if", "errors>0", "--no-observer"},
				with_environment({{"FORKTAIL_PASSWORD", "pw"}}));
	INFO(joe.err);
	CHECK(joe.status == 0);
}

TEST_CASE("a server without RESP3 is reported in a sentence, and pushes need RESP3")
{
	FakeServer old([](Peer &peer) {
		for (std::string request; !(request = peer.hear()).empty();)
			if (!peer.say(contains(request, "HELLO")
					  ? "-ERR unknown command `HELLO`, with args\r\n"
					  : greeting_answer(request)))
				return;
	});
	const Result r = load(old.where({"-3", "-n", "10", "-q", "--no-observer"}));
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
	CHECK(contains(r.err, "rejected HELLO 3 (ERR unknown command `HELLO`, with args). Redis supports "
			      "RESP3 from version 6.0"));
	CHECK(load({"--tracking"}).status == 2);
	CHECK(contains(load({"--tracking"}).err, "--tracking needs --resp3"));
	CHECK(contains(load({"-3", "--tracking=x"}).err, "--tracking=bcast"));
	CHECK(contains(load({"-3", "--protocol", "memcache_text"}).err, "memcached does not use RESP3"));
}
