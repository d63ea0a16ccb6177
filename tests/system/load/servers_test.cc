// SPDX-License-Identifier: MIT
// Several independent servers: the same keys go to the same server as through a real twemproxy, for Redis and
// memcached, and a dead server delays no other.
#include <csignal>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/nutcracker.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

Arguments each(const std::vector<std::string> &addresses, const Arguments &more)
{
	Arguments all = {"-q", "--no-observer"};
	for (const std::string &a : addresses)
		all.insert(all.end(), {"--server", a});
	all.insert(all.end(), more.begin(), more.end());
	return all;
}

std::string at_port(int port)
{
	return "127.0.0.1:" + std::to_string(port);
}

} // namespace

TEST_CASE("Redis: the same keys on the same instances, with the proxy and without it")
{
	RedisOptions tcp;
	tcp.tcp = true;
	std::vector<std::unique_ptr<Redis>> servers;
	std::vector<std::string> addresses;
	for (int i = 0; i < 4; i++) {
		servers.push_back(std::make_unique<Redis>(tcp));
		addresses.push_back(at_port(servers.back()->port()));
	}
	NutcrackerOptions options;
	options.servers = addresses;
	options.named = false; // names would be hashed instead of addresses
	Nutcracker proxy(options);

	const Arguments fill = {"--fill", "5000", "-c", "4", "--key-prefix", "some key:"};
	Arguments through = {"-q", "--no-observer", "-s", proxy.socket()};
	through.insert(through.end(), fill.begin(), fill.end());
	Result r = load(through);
	INFO(r.err);
	REQUIRE(r.status == 0);
	std::vector<std::string> by_proxy;
	for (auto &s : servers) {
		by_proxy.push_back(s->command(
		    {"EVAL", "local k = redis.call('KEYS', '*') table.sort(k) return table.concat(k, ',')",
		     "0"}));
		CHECK(std::stoi(s->command({"DBSIZE"})) > 500);
		s->command({"FLUSHALL"});
	}
	TempDir dir;
	Arguments direct = each(addresses, fill);
	direct.insert(direct.end(), {"--json", dir.file("json")});
	r = load(direct);
	INFO(r.err);
	REQUIRE(r.status == 0);
	for (size_t i = 0; i < servers.size(); i++)
		CHECK(servers[i]->command(
			  {"EVAL",
			   "local k = redis.call('KEYS', '*') table.sort(k) return table.concat(k, ',')",
			   "0"}) == by_proxy[i]);
	const Json run = parse_json(read_file(dir.file("json")))["runs"][0];
	REQUIRE(run["nodes"].size() == 4);
	for (size_t i = 0; i < servers.size(); i++)
		CHECK(run["nodes"][i]["requests"] == std::stoull(servers[i]->command({"DBSIZE"})));
}

TEST_CASE("memcached: the same keys on the same instances, in each protocol")
{
	MemcachedOptions tcp;
	tcp.tcp = true;
	std::vector<std::unique_ptr<Memcached>> servers;
	std::vector<std::string> addresses;
	for (int i = 0; i < 3; i++) {
		servers.push_back(std::make_unique<Memcached>(tcp));
		addresses.push_back(at_port(servers.back()->port()));
	}
	NutcrackerOptions options;
	options.protocol = NutcrackerOptions::MEMCACHED;
	options.servers = addresses;
	options.named = false;
	Nutcracker proxy(options);

	Result r = load({"-q", "--no-observer", "-s", proxy.socket(), "--protocol", "memcache_text", "--fill",
			 "2000", "-c", "3", "-P", "1"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	// All values set through the proxy are found without it, so every key is where it was looked for.
	for (const char *protocol : {"memcache_text", "memcache_binary", "memcache_meta"}) {
		INFO(protocol);
		TempDir dir;
		r = load(each(addresses, {"--protocol", protocol, "--ratio", "0:1", "-r", "2000",
					  "--key-pattern", "sequential", "-n", "2000", "-c", "3", "-P", "4",
					  "--json", dir.file("json")}));
		INFO(r.err);
		REQUIRE(r.status == 0);
		const Json run = parse_json(read_file(dir.file("json")))["runs"][0];
		CHECK(run["total"]["requests"] == 2000);
		CHECK(run["total"]["misses"] == 0);
		CHECK(run["nodes"].size() == 3);
	}
}

TEST_CASE("the log has the server behind the proxy for each request")
{
	const bool named = GENERATE(true, false);
	INFO("named " << named);
	RedisOptions tcp;
	tcp.tcp = true;
	std::vector<std::unique_ptr<Redis>> servers;
	NutcrackerOptions options;
	options.named = named;
	std::string behind;
	for (int i = 0; i < 3; i++) {
		servers.push_back(std::make_unique<Redis>(tcp));
		options.servers.push_back(at_port(servers.back()->port()));
		behind += (i ? "," : "") + (named ? "server" + std::to_string(i) + "=" : std::string()) +
			  at_port(servers.back()->port());
	}
	Nutcracker proxy(options);
	TempDir dir;
	const Arguments through = {"-q",       "--no-observer", "-s", proxy.socket(),
				   "--behind", behind,		"-o", dir.file("log")};
	const auto log_of = [&](const Arguments &more) {
		Arguments all = through;
		all.insert(all.end(), more.begin(), more.end());
		const Result r = load(all);
		INFO(r.err);
		REQUIRE(r.status == 0);
		const Log log = read_log(dir.file("log"));
		REQUIRE(log.whole());
		std::vector<size_t> counts(servers.size() + 1);
		for (const ft_request &q : log.requests)
			counts.at(q.behind)++;
		return std::pair(log, counts);
	};

	auto [fill, counts] = log_of({"--fill", "20000", "-c", "4"});
	CHECK(counts[0] == 0);
	for (size_t i = 0; i < servers.size(); i++) {
		CHECK(std::to_string(counts[i + 1]) == servers[i]->command({"DBSIZE"}));
		const Json one = fill.manifest["behind"][i];
		CHECK(one["address"] == at_port(servers[i]->port()));
		CHECK(one["name"] == (named ? "server" + std::to_string(i) : at_port(servers[i]->port())));
	}
	// A custom command's only key is known too. One with several keys has none, and neither has PING.
	for (auto &s : servers)
		s->command({"FLUSHALL"});
	counts = log_of({"--command", "SADD set:__int__ x", "-r", "1000", "--key-pattern", "sequential", "-n",
			 "1000", "-c", "1"})
		     .second;
	CHECK(counts[0] == 0);
	for (size_t i = 0; i < servers.size(); i++)
		CHECK(std::to_string(counts[i + 1]) == servers[i]->command({"DBSIZE"}));
	CHECK(log_of({"--command", "MGET a __key__", "-n", "50"}).second[0] == 50);
	CHECK(log_of({"--command", "PING", "-n", "50"}).second[0] == 50);
}

TEST_CASE("options that exclude servers behind a proxy")
{
	const struct {
		Arguments arguments;
		const char *says;
	} cases[] = {
	    {{"--behind", "a:1"}, "Name the log with -o"},
	    {{"--behind", "a:1,b:2,a:1", "-o", "x"}, "names a:1 twice"},
	    {{"--behind", "=a:1", "-o", "x"}, "has no name before its ="},
	    {{"--behind", "a:1,", "-o", "x"}, "--behind"},
	    {{"--behind", "redis://a:1", "-o", "x"}, "got a URI"},
	    {{"--behind", "a:1", "-o", "x", "--cluster", "--server", "b:1"}, "servers of a proxy"},
	    {{"--behind", "a:1", "-o", "x", "--latency"}, "Remove --replay, --pubsub"},
	};
	for (const auto &c : cases) {
		const Result r = load(c.arguments);
		INFO(c.says << ": " << r.err);
		CHECK(r.status == 2);
		CHECK(lines(r.err) == 1);
		CHECK(contains(r.err, c.says));
	}
}

TEST_CASE("one of several servers dies: requests for its keys end, the others continue")
{
	RedisOptions tcp;
	tcp.tcp = true;
	Redis a(tcp), b(tcp);
	TempDir dir;
	Process run(load_command(each({at_port(a.port()), at_port(b.port())},
				      {"--rate", "1000", "--duration", "6", "-r", "1000", "-c", "4",
				       "--retry", "1s", "-o", dir.file("log"), "--json", dir.file("json")})));
	REQUIRE(eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(30)));
	a.process().signal(SIGKILL);
	REQUIRE(run.wait(Seconds(60)).has_value());
	INFO(run.err());
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	const Log log = read_log(dir.file("log"));
	CHECK(figures["total"]["requests"] == 6000);
	CHECK(log.requests.size() == 6000);
	REQUIRE(figures["outages"].size() == 1);
	CHECK(figures["outages"][0]["server"] == at_port(a.port()));
	CHECK(figures["outages"][0]["failed"] == figures["total"]["errors"]);
	CHECK(figures["total"]["errors"].get<uint64_t>() > 100);
	for (const Json &n : figures["nodes"])
		if (n["server"] == at_port(b.port()))
			CHECK(n["errors"] == 0);
}

TEST_CASE("servers that close when a connection sets its name, as proxies do: a reopened one sets none")
{
	const auto talk = [](Peer &peer) {
		int answers = 0;
		for (std::string request; !(request = peer.hear()).empty();) {
			if (contains(request, "SETNAME"))
				return;
			const std::string greeting = greeting_answer(request);
			if (!peer.say(greeting.empty() ? "$1\r\nx\r\n" : greeting))
				return;
			if (greeting.empty() && ++answers == 5)
				return;
		}
	};
	FakeServer a(talk, false), b(talk, false);
	TempDir dir;
	const Result r = load(each({at_port(std::stoi(a.where().at(1))), at_port(std::stoi(b.where().at(1)))},
				   {"-t", "get", "-n", "200", "-r", "1000", "-c", "1", "--backoff", "1ms",
				    "--retry", "5s", "-o", dir.file("log")}));
	INFO(r.err);
	const Log log = read_log(dir.file("log"));
	CHECK(log.requests.size() == 200);
	// At most one in six met the end of a connection.
	CHECK(log.with_status(FT_STATUS_OK) >= 150);
}

TEST_CASE("servers that exclude several servers")
{
	Result r = load({"--server", "127.0.0.1:1", "--server", "127.0.0.1:1", "-q"});
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
	RedisOptions tcp;
	tcp.tcp = true;
	Redis a(tcp);
	r = load({"--server", at_port(a.port()), "--server", at_port(a.port()), "-q"});
	CHECK(r.status != 0);
	CHECK(contains(r.err, "named twice"));
	r = load({"--server", "127.0.0.1:1", "--server", "127.0.0.1:2", "--read-from", "any"});
	CHECK(r.status == 2);
	CHECK(lines(r.err) == 1);
}
